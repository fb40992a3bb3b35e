//! Reading the fields of a document: each is read once, and what is left over is noted.

use std::collections::BTreeSet;

use kitbag_contract::text::shown;

use crate::node::Node;
use crate::note::Note;

/// The most notes that are kept: a hostile document could cause tens of thousands.
const MOST_NOTES: usize = 100;

/// What is to be said of a document.
#[derive(Default)]
pub(crate) struct Notes {
    list: Vec<Note>,
    left_out: usize,
    /// A limit is zero: the tool may do nothing at all.
    pub(crate) has_zero_limit: bool,
}

/// A table whose fields are read.
pub(crate) struct Fields<'a> {
    path: String,
    entries: &'a [(String, Node)],
    read: BTreeSet<&'static str>,
}

impl Notes {
    /// Notes something of a place.
    pub(crate) fn add(&mut self, key: impl Into<String>, text: impl Into<String>) {
        match self.list.len() < MOST_NOTES {
            true => self.list.push(Note { key: key.into(), text: text.into() }),
            false => self.left_out += 1,
        }
    }

    /// Notes a value of another type than the format says.
    pub(crate) fn wrong_type(&mut self, key: impl Into<String>, expected: &str, found: &Node) {
        self.add(
            key,
            format!("it is {}, and should be {expected}: it wishes nothing", found.kind()),
        );
    }

    pub(crate) fn into_list(mut self) -> Vec<Note> {
        if self.left_out > 0 {
            let text = format!("there are {} more notes", self.left_out);
            self.list.push(Note { key: String::new(), text });
        }
        self.list
    }
}

/// Joins a path and a key.
pub(crate) fn join(path: &str, key: &str) -> String {
    let key = shown(key);
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

impl<'a> Fields<'a> {
    /// The fields of a node that has to be a table.
    pub(crate) fn of(path: impl Into<String>, node: &'a Node, notes: &mut Notes) -> Option<Self> {
        let path = path.into();
        match node {
            Node::Table(entries) => Some(Self { path, entries, read: BTreeSet::new() }),
            Node::Null => None,
            other => {
                notes.wrong_type(path, "a table", other);
                None
            }
        }
    }

    /// The path of a field.
    pub(crate) fn path(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// A field, which counts as read. One that is empty in its format is not there.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.read.insert(key);
        let found = self.entries.iter().find(|(own, _)| own == key).map(|(_, node)| node);
        found.filter(|node| **node != Node::Null)
    }

    /// A table in this one.
    pub(crate) fn table(&mut self, key: &'static str, notes: &mut Notes) -> Option<Self> {
        let node = self.take(key)?;
        Self::of(self.path(key), node, notes)
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &'static str, notes: &mut Notes) -> Option<&'a str> {
        match self.take(key)? {
            Node::Text(text) => Some(text),
            other => {
                notes.wrong_type(self.path(key), "a text", other);
                None
            }
        }
    }

    /// A boolean.
    pub(crate) fn bool(&mut self, key: &'static str, notes: &mut Notes) -> Option<bool> {
        match self.take(key)? {
            Node::Bool(value) => Some(*value),
            other => {
                notes.wrong_type(self.path(key), "`true` or `false`", other);
                None
            }
        }
    }

    /// A limit: a positive integer. Zero wishes nothing at all.
    pub(crate) fn limit(&mut self, key: &'static str, notes: &mut Notes) -> Option<u64> {
        match self.take(key)? {
            Node::Integer(0) => {
                notes.has_zero_limit = true;
                notes.add(self.path(key), "it is zero, so that the manifest wishes nothing");
                None
            }
            Node::Integer(value) if u64::try_from(*value).is_ok() => u64::try_from(*value).ok(),
            other => {
                notes.wrong_type(self.path(key), "a positive integer", other);
                None
            }
        }
    }

    /// A list, of whatever it is. `Err`: it is there and is none.
    pub(crate) fn list(
        &mut self,
        key: &'static str,
        notes: &mut Notes,
    ) -> Result<Vec<(String, &'a Node)>, ()> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Node::List(list)) => {
                let path = self.path(key);
                let item = |(index, node)| (format!("{path}[{index}]"), node);
                Ok(list.iter().enumerate().map(item).collect())
            }
            Some(other) => {
                notes.wrong_type(self.path(key), "a list", other);
                Err(())
            }
        }
    }

    /// A list of texts. What in it is none is noted.
    pub(crate) fn texts(&mut self, key: &'static str, notes: &mut Notes) -> Vec<(String, &'a str)> {
        let list = self.list(key, notes).unwrap_or_default();
        let texts = list.into_iter().filter_map(|(path, node)| match node {
            Node::Text(text) => Some((path, &**text)),
            other => {
                notes.wrong_type(path, "a text", other);
                None
            }
        });
        texts.collect()
    }

    /// Whether there are fields that were not read.
    pub(crate) fn has_unread(&self) -> bool {
        self.entries.iter().any(|(key, _)| !self.read.contains(&**key))
    }

    /// Notes the fields that were not read.
    pub(crate) fn note_unread(&self, notes: &mut Notes) {
        for (key, node) in self.entries.iter().filter(|(key, _)| !self.read.contains(&**key)) {
            match node {
                Node::Unusable(reason) => notes.add(self.path(key), format!("it is {reason}")),
                _ => notes.add(self.path(key), "it has no meaning here"),
            }
        }
    }

    /// The entries of a table whose keys are names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (String, &'a str, &'a Node)> {
        self.entries.iter().map(|(key, node)| (self.path(key), &**key, node))
    }
}
