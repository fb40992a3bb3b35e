//! Finds what a page is about.
//!
//! The rule: the element `main`, else what has the role `main`, else the only `article`, else
//! the body. Of it goes what is not read: scripts, forms, what is hidden, navigation; of a body
//! header, footer, sidebars and what is named like one, too. Where nothing is left, or `main`
//! was not asked for, it is the whole body.

use std::rc::Rc;

use html5ever::tendril::StrTendril;
use html5ever::{QualName, local_name, ns};
use markup5ever_rcdom::{Handle, Node, NodeData, RcDom};
use url::Url;

use crate::tree::parent;

/// What a page is about.
pub(crate) struct Content {
    /// The element that holds it.
    pub(crate) node: Handle,
    /// The title of the page.
    pub(crate) title: Option<String>,
}

/// Elements that are never read.
const UNREAD: [&str; 15] = [
    "script", "style", "noscript", "template", "iframe", "svg", "button", "input", "textarea",
    "dialog", "canvas", "object", "audio", "video", "map",
];

/// Words of a class or an id that name what surrounds the content.
const SURROUNDINGS: [&str; 18] = [
    "nav",
    "navbar",
    "navigation",
    "menu",
    "sidebar",
    "side-bar",
    "footer",
    "header",
    "breadcrumb",
    "breadcrumbs",
    "toc",
    "cookie",
    "cookies",
    "banner",
    "ads",
    "advertisement",
    "share",
    "skip-link",
];

/// What `htmd` does not join with what follows: blocks and links.
const UNJOINED: [&str; 67] = [
    "a",
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "pre",
    "script",
    "search",
    "section",
    "style",
    "summary",
    "table",
    "tbody",
    "td",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];

/// Selects the content of a page, cleans it and makes its links absolute.
pub(crate) fn select(tree: &RcDom, base: Option<&Url>, main: bool) -> Content {
    let elements = elements(&tree.document);
    let named = |name: &str| elements.iter().find(|node| is(node, name)).cloned();
    let title = named("title").map(|node| line(&text_of(&node))).filter(|it| !it.is_empty());
    let body = named("body").unwrap_or_else(|| tree.document.clone());
    // The page may say what its links are relative to.
    let own = named("base").and_then(|node| attribute(&node, "href"));
    let base = match (own, base) {
        (Some(own), Some(base)) => base.join(&own).ok(),
        (Some(own), None) => Url::parse(&own).ok(),
        (None, base) => base.cloned(),
    };
    let node = match main.then(|| center(&elements)).flatten() {
        Some(node) => {
            clean(&node, false);
            node
        }
        None => {
            let has_text = |node: &Handle| !line(&text_of(node)).is_empty();
            // Where all of a page looks like surroundings, that is what it is about.
            match main && has_text_outside_of_surroundings(&body) {
                true => clean(&body, true),
                false if has_text(&body) => clean_unread(&body),
                false => {}
            }
            body
        }
    };
    drop(elements);
    finish(&node, base.as_ref());
    Content { node, title }
}

/// The element that a page marks as its content, where it holds text.
fn center(elements: &[Handle]) -> Option<Handle> {
    let has_text = |node: &&Handle| !is_unread(node) && !line(&text_of(node)).is_empty();
    let marked = elements
        .iter()
        .find(|node| is(node, "main"))
        .or_else(|| elements.iter().find(|node| attribute(node, "role").as_deref() == Some("main")))
        .filter(has_text);
    if let Some(node) = marked {
        return Some(node.clone());
    }
    // Those that lie in no other.
    let mut articles = elements
        .iter()
        .filter(|node| is(node, "article") && !ancestors(node).any(|above| is(&above, "article")))
        .filter(has_text);
    match (articles.next(), articles.next()) {
        (Some(only), None) => Some(only.clone()),
        _ => None,
    }
}

/// All elements below a node, in their order.
fn elements(root: &Handle) -> Vec<Handle> {
    let mut found = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(node) = open.pop() {
        open.extend(node.children.borrow().iter().rev().cloned());
        if matches!(node.data, NodeData::Element { .. }) {
            found.push(node);
        }
    }
    found
}

fn has_text_outside_of_surroundings(body: &Handle) -> bool {
    let mut open = vec![body.clone()];
    while let Some(node) = open.pop() {
        if let NodeData::Text { contents } = &node.data
            && !contents.borrow().trim().is_empty()
        {
            return true;
        }
        let children = node.children.borrow();
        open.extend(children.iter().filter(|it| !is_unread(it) && !is_surrounding(it)).cloned());
    }
    false
}

/// Takes away what is not read, and in a whole body what surrounds the content.
fn clean(root: &Handle, is_body: bool) {
    let is_kept = |node: &Handle| {
        let surrounds = match is_body {
            true => is_surrounding(node),
            false => is(node, "nav") || has_role(node),
        };
        !is_unread(node) && !surrounds
    };
    retain(root, &is_kept);
}

fn clean_unread(root: &Handle) {
    retain(root, &|node: &Handle| !is_unread(node));
}

fn retain(root: &Handle, is_kept: &dyn Fn(&Handle) -> bool) {
    let mut open = vec![root.clone()];
    while let Some(node) = open.pop() {
        node.children.borrow_mut().retain(is_kept);
        open.extend(node.children.borrow().iter().cloned());
    }
}

fn is_unread(node: &Handle) -> bool {
    let NodeData::Element { name, .. } = &node.data else { return false };
    UNREAD.contains(&&*name.local)
        || attribute(node, "hidden").is_some()
        || attribute(node, "aria-hidden").as_deref() == Some("true")
        || attribute(node, "style").is_some_and(|style| hides(&style))
}

/// Whether a style keeps an element from being seen.
pub(crate) fn hides(style: &str) -> bool {
    let style: String = style.to_ascii_lowercase().split_ascii_whitespace().collect();
    ["display:none", "visibility:hidden"].iter().any(|hidden| style.contains(hidden))
}

/// Whether its role is one of what surrounds the content.
fn has_role(node: &Handle) -> bool {
    const ROLES: [&str; 5] = ["navigation", "banner", "contentinfo", "search", "complementary"];
    attribute(node, "role").is_some_and(|role| ROLES.contains(&&*role))
}

fn is_surrounding(node: &Handle) -> bool {
    let NodeData::Element { name, .. } = &node.data else { return false };
    if matches!(&*name.local, "nav" | "header" | "footer" | "aside") || has_role(node) {
        return true;
    }
    // Of containers alone: a class of a heading says how it looks.
    matches!(&*name.local, "div" | "section" | "ul" | "ol" | "table" | "td" | "a")
        && ["class", "id"].iter().any(|key| {
            attribute(node, key).is_some_and(|value| {
                let value = value.to_ascii_lowercase();
                value.split_ascii_whitespace().any(|word| SURROUNDINGS.contains(&word))
            })
        })
}

/// Makes links absolute, code of what is preformatted, and one of what is alike.
fn finish(root: &Handle, base: Option<&Url>) {
    for node in elements(root) {
        join(&node);
        let NodeData::Element { name, attrs, .. } = &node.data else { continue };
        match &*name.local {
            "a" | "img" => {
                let key = if &*name.local == "a" { "href" } else { "src" };
                attrs.borrow_mut().retain_mut(|attribute| {
                    if &*attribute.name.local != key {
                        return true;
                    }
                    let value = attribute.value.trim();
                    // A link that runs a script leads nowhere.
                    if value.to_ascii_lowercase().starts_with("javascript:") {
                        return false;
                    }
                    if let Some(url) = base.and_then(|base| base.join(value).ok()) {
                        attribute.value = StrTendril::from(url.as_str());
                    }
                    true
                });
            }
            "pre" => fence(&node),
            _ => {}
        }
    }
}

/// Puts what is preformatted into `code`, without which it would be written as a paragraph.
fn fence(pre: &Handle) {
    let is_inner = ancestors(pre).any(|above| is(&above, "pre"));
    if is_inner || elements(pre).iter().any(|node| is(node, "code")) {
        return;
    }
    let code = Node::new(NodeData::Element {
        name: QualName::new(None, ns!(html), local_name!("code")),
        attrs: Vec::new().into(),
        template_contents: None.into(),
        mathml_annotation_xml_integration_point: false,
    });
    let children = std::mem::take(&mut *pre.children.borrow_mut());
    for child in &children {
        child.parent.set(Some(Rc::downgrade(&code)));
    }
    *code.children.borrow_mut() = children;
    code.parent.set(Some(Rc::downgrade(pre)));
    pre.children.borrow_mut().push(code);
}

/// Joins children that follow each other and are alike but for their text. `htmd` would do
/// that, for each of them anew with all that follow; nothing is left for it.
fn join(parent: &Handle) {
    // Of its children `htmd` joins none.
    if is(parent, "ol") {
        return;
    }
    let mut children = parent.children.borrow_mut();
    let mut joined: Vec<Handle> = Vec::with_capacity(children.len());
    for child in children.drain(..) {
        if !joined.last().is_some_and(|before| takes_text(before, &child)) {
            joined.push(child);
        }
    }
    *children = joined;
}

/// Adds the text of an element to that of the one before, where they are alike and hold
/// nothing else. The rule is that of `htmd`.
fn takes_text(before: &Handle, node: &Handle) -> bool {
    let NodeData::Element { name, attrs, .. } = &before.data else { return false };
    let NodeData::Element { name: other, attrs: others, .. } = &node.data else { return false };
    let are_alike = name == other
        || matches!(
            (&*name.local, &*other.local),
            ("i", "em") | ("em", "i") | ("b", "strong") | ("strong", "b")
        );
    if !are_alike || attrs != others || UNJOINED.contains(&&*name.local) {
        return false;
    }
    let (Some(text), Some(more)) = (only_text(before), only_text(node)) else { return false };
    let (NodeData::Text { contents }, NodeData::Text { contents: more }) = (&text.data, &more.data)
    else {
        return false;
    };
    contents.borrow_mut().push_tendril(&more.borrow());
    true
}

/// The text that is all that a node holds.
fn only_text(node: &Handle) -> Option<Handle> {
    match &**node.children.borrow() {
        [only] if matches!(only.data, NodeData::Text { .. }) => Some(only.clone()),
        _ => None,
    }
}

pub(crate) fn is(node: &Handle, tag: &str) -> bool {
    matches!(&node.data, NodeData::Element { name, .. } if &*name.local == tag)
}

pub(crate) fn attribute(node: &Handle, key: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    let attrs = attrs.borrow();
    attrs.iter().find(|it| &*it.name.local == key).map(|it| it.value.to_string())
}

pub(crate) fn ancestors(node: &Handle) -> impl Iterator<Item = Handle> {
    std::iter::successors(parent(node), parent)
}

/// The text below a node, as far as it tells whether there is some.
fn text_of(root: &Handle) -> String {
    const ENOUGH: usize = 300;
    let mut text = String::new();
    let mut open = vec![root.clone()];
    while let Some(node) = open.pop() {
        if let NodeData::Text { contents } = &node.data {
            let contents = contents.borrow();
            if !contents.trim().is_empty() {
                text.push_str(&contents);
            }
            if text.len() > ENOUGH {
                break;
            }
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    text
}

/// A text on one line.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    kitbag_workspace::cut(&line, 300).to_owned()
}
