//! Content that browsers do not show, or show only after the scripts of a page have run.

use std::collections::HashMap;
use std::rc::Rc;

use markup5ever_rcdom::{Handle, NodeData};

use crate::dom::{
    ancestors, append, attribute, element, elements, has_text, is, letters, line, name, replace,
    set_attribute, take_children, text_of,
};
use crate::{image, parse};

/// A page with fewer characters of text has almost nothing to read.
pub(crate) const LITTLE: usize = 250;

/// Hidden text of fewer characters is not worth a note.
const NOTABLE: usize = 500;

/// Maximum number of streamed pieces of a page that are moved to their positions.
const MOST_STREAMED: usize = 256;

/// Adds the content of `template` and `noscript` to the tree, as hidden elements, and moves
/// streamed content to its position. `room` is the number of elements and text nodes that may be
/// added to the tree.
pub(crate) fn open(document: &Handle, body: &Handle, room: usize) {
    place_streamed(document);
    let mut opener = Opener { room, moved: Vec::new() };
    let mut nodes = vec![(document.clone(), 0, false)];
    while let Some((node, depth, is_in_head)) = nodes.pop() {
        let is_in_head = is_in_head || is(&node, "head");
        opener.open(&node, depth, is_in_head);
        let children = node.children.borrow();
        nodes.extend(children.iter().map(|child| (child.clone(), depth + 1, is_in_head)));
    }
    append(body, opener.moved);
}

/// React streams the content of `<template id="B:0">` as `<div hidden id="S:0">` at the end of the
/// page, and a script moves it.
fn place_streamed(document: &Handle) {
    let all = elements(document);
    let named = |tag: &'static str, prefix: &'static str| {
        all.iter().filter(move |node| is(node, tag)).filter_map(move |node| {
            let id = attribute(node, "id")?;
            Some((id.strip_prefix(prefix)?.to_owned(), node.clone()))
        })
    };
    let places: HashMap<String, Handle> = named("template", "B:").collect();
    for (key, content) in named("div", "S:").take(MOST_STREAMED) {
        set_attribute(&content, "hidden", None);
        if let Some(place) = places.get(&key)
            && !ancestors(place).any(|above| Rc::ptr_eq(&above, &content))
        {
            replace(&content, None);
            replace(place, Some(content));
        }
    }
}

/// Opens elements that browsers do not show.
struct Opener {
    room: usize,
    /// Hidden elements of the head, which become part of the body.
    moved: Vec<Handle>,
}

impl Opener {
    /// Opens the children of a node.
    fn open(&mut self, parent: &Handle, depth: usize, is_in_head: bool) {
        let is_closed = |node: &Handle| is(node, "template") || is(node, "noscript");
        if !parent.children.borrow().iter().any(is_closed) {
            return;
        }
        let children = take_children(parent);
        let mut opened: Vec<Handle> = Vec::with_capacity(children.len());
        for (index, child) in children.iter().enumerate() {
            let content = match name(child) {
                "template" => open_template(child),
                "noscript" => {
                    let is_element = |it: &&Handle| !name(it).is_empty();
                    let before = opened.iter().rev().find(is_element);
                    let after = children[index + 1..].iter().find(is_element);
                    self.open_noscript(child, depth, [before, after])
                }
                _ => vec![child.clone()],
            };
            match is_in_head && is_closed(child) {
                true => self.moved.extend(content),
                false => opened.extend(content),
            }
        }
        append(parent, opened);
    }

    fn open_noscript(
        &mut self,
        node: &Handle,
        depth: usize,
        beside: [Option<&Handle>; 2],
    ) -> Vec<Handle> {
        let text = match take_children(node).first().map(|child| &child.data) {
            Some(NodeData::Text { contents }) => contents.borrow().to_string(),
            _ => return Vec::new(),
        };
        // A document itself has three elements.
        if text.trim().is_empty() || self.room < 8 {
            return Vec::new();
        }
        let depth = parse::MOST_DEPTH.saturating_sub(depth).max(8);
        let parsed = parse::fragment(text, self.room, depth);
        self.room = parsed.room;
        let inner = elements(&parsed.tree.document);
        let Some(content) = inner.iter().find(|node| is(node, "body")) else { return Vec::new() };
        if has_text(content) {
            return vec![hidden(take_children(content))];
        }
        let is_shown = |node: &&Handle| is(node, "img") && image::has_address(node);
        let images: Vec<Handle> = inner.iter().filter(is_shown).cloned().collect();
        let Some(first) = images.first() else { return Vec::new() };
        // Images here are loaded later by a script. They provide the address of an adjacent image,
        // or are shown themselves.
        match beside.into_iter().flatten().find_map(image_in) {
            Some(image) if !image::has_address(&image) => {
                for key in ["src", "alt", "title"] {
                    if let Some(value) = attribute(first, key) {
                        set_attribute(&image, key, Some(&value));
                    }
                }
                Vec::new()
            }
            Some(_) => Vec::new(),
            None => images.into_iter().filter(image::is_content).collect(),
        }
    }
}

fn open_template(node: &Handle) -> Vec<Handle> {
    let NodeData::Element { template_contents, .. } = &node.data else { return Vec::new() };
    let Some(contents) = template_contents.borrow_mut().take() else { return Vec::new() };
    let children = take_children(&contents);
    // Browsers show the content of a shadow root.
    match attribute(node, "shadowrootmode").is_some() || children.is_empty() {
        true => children,
        false => vec![hidden(children)],
    }
}

/// Creates a hidden element.
fn hidden(children: Vec<Handle>) -> Handle {
    let hidden = element("div", Vec::new());
    set_attribute(&hidden, "hidden", Some(""));
    append(&hidden, children);
    hidden
}

/// Returns the image that an element is or contains, such as in a `picture` or a placeholder box.
fn image_in(node: &Handle) -> Option<Handle> {
    const MOST: usize = 16;
    let mut open = vec![node.clone()];
    let mut image = None;
    let mut seen = 0;
    while let Some(node) = open.pop() {
        seen += 1;
        match &node.data {
            NodeData::Text { contents } if !contents.borrow().trim().is_empty() => return None,
            _ if seen > MOST => return None,
            _ => {}
        }
        if is(&node, "img") {
            image = image.or(Some(node.clone()));
        }
        open.extend(node.children.borrow().iter().rev().take(MOST).cloned());
    }
    image
}

/// Returns whether browsers do not show an element.
pub(crate) fn is_hidden(node: &Handle) -> bool {
    attribute(node, "hidden").is_some()
        || attribute(node, "aria-hidden").as_deref() == Some("true")
        || attribute(node, "style").is_some_and(|style| hides(&style))
}

/// Returns whether a style hides an element.
pub(crate) fn hides(style: &str) -> bool {
    let style: String = style.to_ascii_lowercase().split_ascii_whitespace().collect();
    ["display:none", "visibility:hidden", "content-visibility:hidden"]
        .iter()
        .any(|hidden| style.contains(hidden))
}

/// Makes all hidden elements visible.
pub(crate) fn reveal(root: &Handle) {
    for node in elements(root).iter().chain([root]).filter(|node| is_hidden(node)) {
        for key in ["hidden", "aria-hidden", "style"] {
            set_attribute(node, key, None);
        }
    }
}

/// The visible and hidden text of a page, in characters.
#[derive(Default)]
pub(crate) struct Weight {
    pub(crate) seen: usize,
    pub(crate) hidden: usize,
}

impl Weight {
    /// Measures the text below an element, without elements that are skipped.
    pub(crate) fn of(root: &Handle, is_read: impl Fn(&Handle) -> bool) -> Self {
        let mut weight = Self::default();
        let mut open = vec![(root.clone(), is_hidden(root))];
        while let Some((node, is_in_hidden)) = open.pop() {
            if let NodeData::Text { contents } = &node.data {
                let letters = letters(&contents.borrow());
                match is_in_hidden {
                    true => weight.hidden += letters,
                    false => weight.seen += letters,
                }
            }
            let children = node.children.borrow();
            let read = children.iter().filter(|it| is_read(it));
            open.extend(read.map(|it| (it.clone(), is_in_hidden || is_hidden(it))));
        }
        weight
    }

    /// Returns whether the hidden text is the content of the page.
    pub(crate) fn is_in_hidden(&self) -> bool {
        self.hidden > self.seen && (self.seen < LITTLE || self.hidden > self.seen * 5)
    }

    /// Returns whether much of the page is hidden.
    pub(crate) fn hides_much(&self) -> bool {
        self.hidden > self.seen.max(NOTABLE)
    }
}

/// Returns the address to which a `meta` element redirects browsers.
pub(crate) fn refresh(all: &[Handle]) -> Option<String> {
    let metas = all.iter().filter(|node| is(node, "meta"));
    metas.filter_map(|node| attribute(node, "content")).find_map(|content| {
        let (_, target) = content.split_once([';', ','])?;
        let target = target.trim();
        let target = match target.get(..3) {
            Some(begin) if begin.eq_ignore_ascii_case("url") => {
                target[3..].trim_start().strip_prefix('=')?.trim_start()
            }
            _ => target,
        };
        let target = match target.chars().next()? {
            quote @ ('"' | '\'') => target[1..].split(quote).next()?,
            _ => target,
        };
        let target = line(target);
        (!target.is_empty()).then_some(target)
    })
}

/// Returns the number of scripts in a page.
pub(crate) fn scripts(all: &[Handle]) -> usize {
    all.iter().filter(|node| is(node, "script")).count()
}

/// Returns the title of a page.
pub(crate) fn title(all: &[Handle]) -> Option<String> {
    let title = all.iter().find(|node| is(node, "title"))?;
    let title = line(&text_of(title));
    let title = kitbag_workspace::cut(&title, 300).to_owned();
    (!title.is_empty()).then_some(title)
}
