//! Elements of a page: their names, attributes, text and positions.

use std::rc::Rc;

use html5ever::tendril::StrTendril;
use html5ever::{Attribute, LocalName, QualName, ns};
use markup5ever_rcdom::{Handle, Node, NodeData};

pub(crate) use crate::tree::parent;

/// Returns an element and all elements below it, in document order.
pub(crate) fn elements(root: &Handle) -> Vec<Handle> {
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

/// Returns the name of an element, or an empty string.
pub(crate) fn name(node: &Handle) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

pub(crate) fn is(node: &Handle, tag: &str) -> bool {
    name(node) == tag
}

pub(crate) fn is_heading(node: &Handle) -> bool {
    matches!(name(node), "h1" | "h2" | "h3" | "h4" | "h5" | "h6")
}

pub(crate) fn attribute(node: &Handle, key: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    let attrs = attrs.borrow();
    attrs.iter().find(|it| &*it.name.local == key).map(|it| it.value.to_string())
}

/// Sets an attribute, or removes it.
pub(crate) fn set_attribute(node: &Handle, key: &str, value: Option<&str>) {
    let NodeData::Element { attrs, .. } = &node.data else { return };
    let mut attrs = attrs.borrow_mut();
    attrs.retain(|it| &*it.name.local != key);
    if let Some(value) = value {
        let name = QualName::new(None, ns!(), LocalName::from(key));
        attrs.push(Attribute { name, value: StrTendril::from(value) });
    }
}

/// Returns whether `fits` accepts one of the words of an element's class or id.
pub(crate) fn has_word(node: &Handle, fits: impl Fn(&str) -> bool) -> bool {
    ["class", "id"].iter().any(|key| {
        attribute(node, key)
            .is_some_and(|value| value.to_ascii_lowercase().split_ascii_whitespace().any(&fits))
    })
}

pub(crate) fn ancestors(node: &Handle) -> impl Iterator<Item = Handle> {
    std::iter::successors(parent(node), parent)
}

/// Creates an element without a parent.
pub(crate) fn element(tag: &str, attrs: Vec<Attribute>) -> Handle {
    Node::new(NodeData::Element {
        name: QualName::new(None, ns!(html), LocalName::from(tag)),
        attrs: attrs.into(),
        template_contents: None.into(),
        mathml_annotation_xml_integration_point: false,
    })
}

/// Moves nodes to the end of a parent.
pub(crate) fn append(parent: &Handle, children: Vec<Handle>) {
    for child in &children {
        child.parent.set(Some(Rc::downgrade(parent)));
    }
    parent.children.borrow_mut().extend(children);
}

/// Takes all children of a node.
pub(crate) fn take_children(node: &Handle) -> Vec<Handle> {
    std::mem::take(&mut *node.children.borrow_mut())
}

/// Replaces a child by a node, or removes the child.
pub(crate) fn replace(child: &Handle, node: Option<Handle>) {
    let Some(parent) = parent(child) else { return };
    let mut siblings = parent.children.borrow_mut();
    let Some(index) = siblings.iter().position(|it| Rc::ptr_eq(it, child)) else { return };
    child.parent.set(None);
    if let Some(node) = &node {
        node.parent.set(Some(Rc::downgrade(&parent)));
    }
    siblings.splice(index..=index, node);
}

/// Returns the start of the text below a node.
pub(crate) fn text_of(root: &Handle) -> String {
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

/// Returns whether there is text below a node.
pub(crate) fn has_text(node: &Handle) -> bool {
    !text_of(node).trim().is_empty()
}

/// Returns the number of characters of a text other than white space.
pub(crate) fn letters(text: &str) -> usize {
    text.chars().filter(|it| !it.is_whitespace()).count()
}

/// Returns a text on one line.
pub(crate) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}
