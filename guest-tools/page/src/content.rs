//! Finds the content of a page.
//!
//! The content is the element `main`, otherwise the element with the role `main`, otherwise the
//! only `article`, otherwise the body. Scripts, forms, hidden elements and navigation are removed
//! from it. From a body, the header, the footer, sidebars and similar elements are also removed. If
//! no content would remain, or if `main` is false, the whole body is the content. If most of a page
//! is hidden, the hidden part is content.

use markup5ever_rcdom::{Handle, NodeData, RcDom};
use url::Url;

use crate::article;
use crate::dom::{ancestors, attribute, elements, has_text, has_word, is, is_heading, name};
use crate::visibility::{self, Weight, is_hidden};
use crate::{View, image, link};

/// The content of a page.
pub(crate) struct Content {
    /// The element with the content.
    pub(crate) node: Handle,
    /// The title of the page.
    pub(crate) title: Option<String>,
    /// Notes for the reader.
    pub(crate) notes: Vec<String>,
    /// The number of scripts in the page.
    pub(crate) scripts: usize,
}

/// Elements that are skipped unless the whole page is requested.
const UNREAD: [&str; 13] = [
    "noscript", "template", "iframe", "svg", "button", "input", "textarea", "dialog", "canvas",
    "object", "audio", "video", "map",
];

/// Words of a class or an id that name elements around content.
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

/// Elements that `htmd` does not merge with the next one: blocks and links.
pub(crate) const UNJOINED: [&str; 67] = [
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

/// Selects the content of a page, cleans it and makes its links absolute. `room` is the number of
/// elements and text nodes that may be added to the page.
pub(crate) fn select(tree: &RcDom, view: &View, room: usize) -> Content {
    let document = &tree.document;
    let all = elements(document);
    let title = visibility::title(&all);
    let scripts = visibility::scripts(&all);
    let body = all.iter().find(|node| is(node, "body")).unwrap_or(document).clone();
    // The page may declare the base URL of its links.
    let own = all.iter().find(|node| is(node, "base")).and_then(|node| attribute(node, "href"));
    let base = match (own, view.base) {
        (Some(own), Some(base)) => base.join(&own).ok(),
        (Some(own), None) => Url::parse(&own).ok(),
        (None, base) => base.cloned(),
    };
    let mut notes = Vec::new();
    if let Some(target) = visibility::refresh(&all) {
        let target =
            base.as_ref().and_then(|base| base.join(&target).ok()).map_or(target, String::from);
        if view.base.is_none_or(|url| url.as_str() != target) {
            notes.push(format!("the page forwards to {}", kitbag_workspace::quoted(&target)));
        }
    }
    drop(all);
    visibility::open(document, &body, room);
    let node = match view.main {
        true => main_content(document, &body, view, &mut notes),
        false => {
            visibility::reveal(&body);
            retain(&body, &|node: &Handle| !is_silent(node));
            body
        }
    };
    finish(&node, base.as_ref());
    Content { node, title, notes, scripts }
}

/// Returns the main content of a page.
fn main_content(document: &Handle, body: &Handle, view: &View, notes: &mut Vec<String>) -> Handle {
    let weight = Weight::of(body, |node| {
        !is_silent(node) && !is_surrounding(node) && (is_hidden(node) || !is_unread(node))
    });
    let hidden = weight.hidden;
    if weight.is_in_hidden() {
        visibility::reveal(body);
        notes.push(format!(
            "{hidden} characters of this are hidden in the page, for example until its scripts run"
        ));
    } else if weight.hides_much() {
        let all = view.all;
        notes.push(format!("omitted: {hidden} characters that the page hides; {all} shows them"));
    }
    let elements = elements(document);
    if let Some(node) = center(&elements) {
        let seen =
            |root: &Handle| Weight::of(root, |node| !is_unread(node) && !is_surrounding(node));
        // A marked element with almost no text is not the content of a page with much text.
        let found = seen(&node).seen;
        if found >= visibility::LITTLE || found * 20 > seen(body).seen {
            clean(&node, false);
            if is(&node, "article") {
                article::narrow(&node);
            }
            return node;
        }
    }
    // If the whole page looks like surroundings, they are its content.
    if has_text_outside_of_surroundings(body) {
        clean(body, true);
        article::narrow(body);
    } else if has_text(body) {
        retain(body, &|node: &Handle| !is_unread(node));
    }
    body.clone()
}

/// Returns the element that a page marks as its content, if it has text.
fn center(elements: &[Handle]) -> Option<Handle> {
    let is_seen = |node: &&Handle| {
        !is_unread(node) && has_text(node) && !ancestors(node).any(|above| is_hidden(&above))
    };
    let marked = elements
        .iter()
        .find(|node| is(node, "main"))
        .or_else(|| elements.iter().find(|node| attribute(node, "role").as_deref() == Some("main")))
        .filter(is_seen);
    if let Some(node) = marked {
        return Some(node.clone());
    }
    // Articles that are not nested in others.
    let mut articles = elements
        .iter()
        .filter(|node| is(node, "article") && !ancestors(node).any(|above| is(&above, "article")))
        .filter(is_seen);
    match (articles.next(), articles.next()) {
        (Some(only), None) => Some(only.clone()),
        _ => None,
    }
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

/// Removes skipped elements, and from a whole body the surroundings of the content.
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

fn retain(root: &Handle, is_kept: &dyn Fn(&Handle) -> bool) {
    let mut open = vec![root.clone()];
    while let Some(node) = open.pop() {
        node.children.borrow_mut().retain(is_kept);
        open.extend(node.children.borrow().iter().cloned());
    }
}

/// Returns whether an element never has text for a reader.
fn is_silent(node: &Handle) -> bool {
    matches!(name(node), "script" | "style" | "iframe" | "input")
}

fn is_unread(node: &Handle) -> bool {
    if name(node).is_empty() {
        return false;
    }
    // The heading of an expandable section is often a button.
    let is_title = is(node, "button") && ancestors(node).take(2).any(|above| is_heading(&above));
    is_silent(node) || (UNREAD.contains(&name(node)) && !is_title) || is_hidden(node)
}

/// Returns whether an element has the role of surroundings.
fn has_role(node: &Handle) -> bool {
    const ROLES: [&str; 5] = ["navigation", "banner", "contentinfo", "search", "complementary"];
    attribute(node, "role").is_some_and(|role| ROLES.contains(&&*role))
}

fn is_surrounding(node: &Handle) -> bool {
    if matches!(name(node), "nav" | "header" | "footer" | "aside") || has_role(node) {
        return true;
    }
    // Only containers: the class of a heading describes its appearance.
    matches!(name(node), "div" | "section" | "ul" | "ol" | "table" | "td" | "a")
        && has_word(node, |word| SURROUNDINGS.contains(&word))
}

/// Makes links absolute, and merges equal adjacent elements.
fn finish(root: &Handle, base: Option<&Url>) {
    for node in elements(root) {
        join(&node);
        match name(&node) {
            "a" => {
                link::clean(&node, base);
                link::move_into_block(&node);
            }
            "img" => {
                image::take_source(&node);
                link::join_source(&node, base);
            }
            _ => {}
        }
    }
}

/// Merges adjacent children that are equal except for their text. `htmd` would do so in quadratic
/// time; here no work is left for it.
fn join(parent: &Handle) {
    // `htmd` does not join its children.
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

/// Adds the text of an element to the previous one if they are equal and have no other content, as
/// `htmd` does.
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

/// Returns the text node of a node without other content.
fn only_text(node: &Handle) -> Option<Handle> {
    match &**node.children.borrow() {
        [only] if matches!(only.data, NodeData::Text { .. }) => Some(only.clone()),
        _ => None,
    }
}
