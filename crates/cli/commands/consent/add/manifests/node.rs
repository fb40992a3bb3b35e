//! A document of any format as a bounded tree. An unusable value carries the reason.

use kitbag::base::text::shown;

/// Maximum size of a document in bytes.
pub(crate) const BYTES: usize = 256 << 10;

/// Maximum nesting of tables and lists.
pub(crate) const DEPTH: usize = 32;

pub(crate) const VALUES: usize = 20_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Integer(i128),
    /// A number as it is written, if it has a fraction or is too large.
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// Entries in the order of the document; each key occurs once.
    Table(Vec<(String, Node)>),
    /// An unusable value, with the reason.
    Unusable(&'static str),
}

pub(crate) type Problem = String;

impl Node {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Unusable(reason) => reason,
        }
    }

    #[cfg(test)]
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Table(entries) = self else { return None };
        entries.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }
}

/// Value of a key that occurs more than once in a table.
pub(crate) const TWICE: Node = Node::Unusable("a duplicate key");

/// Adds an entry to a table. If the key already exists, neither value takes effect.
pub(crate) fn insert(entries: &mut Vec<(String, Node)>, key: String, value: Node) {
    match entries.iter_mut().find(|(own, _)| *own == key) {
        Some((_, known)) => *known = TWICE,
        None => entries.push((key, value)),
    }
}

/// Refuses a document that is too large.
pub(crate) fn check_size(text: &str) -> Result<(), Problem> {
    if text.len() <= BYTES {
        return Ok(());
    }
    Err(format!("it has {} bytes, more than the limit of {} KiB", text.len(), BYTES >> 10))
}

/// Limits the number of values in a document.
#[derive(Default)]
pub(crate) struct Budget {
    values: usize,
}

impl Budget {
    /// Counts one more value at this depth.
    pub(crate) fn take(&mut self, depth: usize) -> Result<(), Problem> {
        self.values += 1;
        if depth > DEPTH {
            return Err(format!("it nests deeper than {DEPTH} levels"));
        }
        if self.values > VALUES {
            return Err(format!("it has more than {VALUES} values"));
        }
        Ok(())
    }
}

pub(crate) fn quoted(key: &str) -> String {
    format!("`{}`", shown(key))
}
