//! Reads the fields of a document: each field is read once, and unread fields are noted.

use std::borrow::Cow;
use std::collections::BTreeSet;

use kitbag::base::text::shown;

use super::node::Node;
use super::note::Note;
use super::requested_grants::quoted;

/// Maximum number of notes: a hostile document could cause tens of thousands.
const MOST_NOTES: usize = 100;

/// The note on a field without an equivalent in kitbag.
const UNKNOWN: &str = "kitbag has no such setting; it is ignored";

#[derive(Default)]
pub(crate) struct Notes {
    list: Vec<Note>,
    left_out: usize,
    /// A limit is zero, so the tool may not do anything.
    pub(crate) has_zero_limit: bool,
}

/// A table that tracks which of its fields were read.
pub(crate) struct Fields<'a> {
    path: String,
    entries: &'a [(String, Node)],
    read: BTreeSet<&'static str>,
}

impl Notes {
    /// Adds a note on a field, unless it exists already.
    pub(crate) fn add(&mut self, key: impl Into<String>, text: impl Into<String>) {
        let note = Note { key: key.into(), text: text.into() };
        match self.list.len() < MOST_NOTES {
            true if self.list.contains(&note) => {}
            true => self.list.push(note),
            false => self.left_out += 1,
        }
    }

    /// Notes a value whose type differs from the format's definition.
    pub(crate) fn wrong_type(&mut self, key: impl Into<String>, expected: &str, found: &Node) {
        self.add(key, format!("it must be {expected}, not {}; it is ignored", found.kind()));
    }

    pub(crate) fn into_list(mut self) -> Vec<Note> {
        if self.left_out > 0 {
            let text = format!("there are {} more notes", self.left_out);
            self.list.push(Note { key: String::new(), text });
        }
        self.list
    }
}

/// Joins a path and a key, which is quoted as in TOML if necessary.
pub(crate) fn join(path: &str, key: &str) -> String {
    let is_bare = |key: &str| {
        !key.is_empty()
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let key = match is_bare(key) {
        true => Cow::Borrowed(key),
        false => Cow::Owned(shown(&quoted(key)).to_string()),
    };
    if path.is_empty() { key.into_owned() } else { format!("{path}.{key}") }
}

impl<'a> Fields<'a> {
    /// Returns the fields of a node. Notes an error if the node is not a table.
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

    pub(crate) fn own_path(&self) -> &str {
        &self.path
    }

    pub(crate) fn path(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Returns true if a field exists, with any value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(own, _)| own == key)
    }

    /// Takes a field and marks it as read. An empty value is treated as absent.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.read.insert(key);
        let found = self.entries.iter().find(|(own, _)| own == key).map(|(_, node)| node);
        found.filter(|node| **node != Node::Null)
    }

    pub(crate) fn table(&mut self, key: &'static str, notes: &mut Notes) -> Option<Self> {
        let node = self.take(key)?;
        Self::of(self.path(key), node, notes)
    }

    pub(crate) fn text(&mut self, key: &'static str, notes: &mut Notes) -> Option<&'a str> {
        match self.take(key)? {
            Node::Text(text) => Some(text),
            other => {
                notes.wrong_type(self.path(key), "a text", other);
                None
            }
        }
    }

    pub(crate) fn bool(&mut self, key: &'static str, notes: &mut Notes) -> Option<bool> {
        match self.take(key)? {
            Node::Bool(value) => Some(*value),
            other => {
                notes.wrong_type(self.path(key), "`true` or `false`", other);
                None
            }
        }
    }

    /// Reads a limit: a positive integer. Zero means that the tool may do nothing.
    pub(crate) fn limit(&mut self, key: &'static str, notes: &mut Notes) -> Option<u64> {
        match self.take(key)? {
            Node::Integer(0) => {
                notes.zero_limit(self.path(key));
                None
            }
            Node::Integer(value) if u64::try_from(*value).is_ok() => u64::try_from(*value).ok(),
            other => {
                notes.wrong_type(self.path(key), "a positive integer", other);
                None
            }
        }
    }

    /// Reads a list with values of any type. `Err`: the field is not a list.
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

    /// Reads a list of strings. Values of another type are noted.
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

    /// Adds the same note for each of these fields that exists.
    pub(crate) fn remark(&mut self, keys: &[&'static str], text: &str, notes: &mut Notes) {
        for key in keys {
            if self.take(key).is_some() {
                notes.add(self.path(key), text);
            }
        }
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.entries.iter().any(|(key, _)| !self.read.contains(&**key))
    }

    pub(crate) fn note_unread(&self, notes: &mut Notes) {
        for (key, node) in self.entries.iter().filter(|(key, _)| !self.read.contains(&**key)) {
            match node {
                Node::Unusable(reason) => {
                    notes.add(self.path(key), format!("it is {reason}; it is ignored"));
                }
                _ => notes.add(self.path(key), UNKNOWN),
            }
        }
    }

    /// Returns the entries of a table whose keys are names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (String, &'a str, &'a Node)> {
        self.entries.iter().map(|(key, node)| (self.path(key), &**key, node))
    }
}

impl Notes {
    /// Records a zero limit. The manifest then requests nothing.
    pub(crate) fn zero_limit(&mut self, key: impl Into<String>) {
        self.has_zero_limit = true;
        self.add(key, "it is zero, so the manifest requests nothing");
    }
}
