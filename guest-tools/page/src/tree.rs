//! The tree that `html5ever` builds and `htmd` reads: nodes of `markup5ever_rcdom`.
//!
//! `RcDom` searches for a node among its siblings from the first one. Misplaced content of a table
//! is inserted before it one by one, after all previous ones. Therefore this tree searches from the
//! last one, near which the tree builder works. It does not store errors.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode};
use html5ever::tendril::StrTendril;
use html5ever::tree_builder::TreeSink;
use html5ever::{Attribute, ExpandedName, QualName};
use markup5ever_rcdom::{Handle, Node, NodeData, RcDom};

/// A tree under construction.
#[derive(Default)]
pub(crate) struct Tree {
    tree: RcDom,
    elements: Cell<usize>,
}

impl Tree {
    /// Returns the number of created elements, including those of the tree builder: it repeats
    /// formatting elements at the start of a paragraph.
    pub(crate) fn elements(&self) -> usize {
        self.elements.get()
    }
}

impl TreeSink for Tree {
    type Handle = Handle;
    type Output = RcDom;
    type ElemName<'a> = ExpandedName<'a>;

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(node) = &child {
            self.remove_from_parent(node);
        }
        let Some((parent, index)) = position(sibling) else { return };
        let mut siblings = parent.children.borrow_mut();
        let node = match child {
            NodeOrText::AppendNode(node) => node,
            NodeOrText::AppendText(text) => {
                let before = index.checked_sub(1).map(|before| &siblings[before].data);
                if let Some(NodeData::Text { contents }) = before {
                    contents.borrow_mut().push_tendril(&text);
                    return;
                }
                Node::new(NodeData::Text { contents: text.into() })
            }
        };
        node.parent.set(Some(Rc::downgrade(&parent)));
        siblings.insert(index, node);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        previous: &Handle,
        child: NodeOrText<Handle>,
    ) {
        match parent(element) {
            Some(_) => self.append_before_sibling(element, child),
            None => self.append(previous, child),
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        if let Some((parent, index)) = position(target) {
            parent.children.borrow_mut().remove(index);
            target.parent.set(None);
        }
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn finish(self) -> RcDom {
        self.tree
    }

    fn get_document(&self) -> Handle {
        self.tree.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.tree.elem_name(target)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.elements.set(self.elements.get() + 1);
        self.tree.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.tree.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.tree.create_pi(target, data)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.tree.append(parent, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.tree.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.tree.get_template_contents(target)
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        self.tree.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.tree.set_quirks_mode(mode);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        self.tree.add_attrs_if_missing(target, attrs);
    }

    fn reparent_children(&self, node: &Handle, parent: &Handle) {
        self.tree.reparent_children(node, parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        self.tree.is_mathml_annotation_xml_integration_point(target)
    }
}

/// Returns the parent of a node.
pub(crate) fn parent(node: &Handle) -> Option<Handle> {
    let parent = node.parent.take();
    node.parent.set(parent.clone());
    parent.and_then(|parent| parent.upgrade())
}

/// Returns the parent of a node and the node's index in it.
fn position(node: &Handle) -> Option<(Handle, usize)> {
    let parent = parent(node)?;
    let index = parent.children.borrow().iter().rposition(|child| Rc::ptr_eq(child, node))?;
    Some((parent, index))
}
