//! The dotted key of a value: `tools.word_count.limits.memory`.

use std::fmt;

use kitbag_base::text::shown;

/// A dotted key, as a list that grows at its end and lives on the stack, so that walking a large
/// file allocates nothing for keys that are not shown.
#[derive(Clone, Copy)]
pub(crate) struct KeyPath<'a> {
    parent: Option<&'a KeyPath<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy)]
enum Segment<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> KeyPath<'a> {
    /// The whole file.
    pub(crate) const ROOT: KeyPath<'static> = KeyPath { parent: None, segment: Segment::Root };

    /// Returns the path of a key in the table at this path.
    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Key(key) }
    }

    /// Returns the path of an element of the array at this path.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), segment: Segment::Index(index) }
    }

    /// Returns the keys that lead to the value, without the elements of arrays.
    pub(crate) fn keys(&self) -> Vec<&'a str> {
        let mut keys = self.parent.map(KeyPath::keys).unwrap_or_default();
        if let Segment::Key(key) = self.segment {
            keys.push(key);
        }
        keys
    }

    /// Returns the path of the table that contains this value.
    pub(crate) fn parent(&self) -> Option<&'a KeyPath<'a>> {
        self.parent
    }
}

impl fmt::Display for KeyPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.segment {
            Segment::Root => Ok(()),
            Segment::Index(index) => write!(f, "[{index}]"),
            Segment::Key(key) => {
                if self.parent.is_some_and(|parent| !matches!(parent.segment, Segment::Root)) {
                    f.write_str(".")?;
                }
                // TOML: a bare key is ASCII letters, digits, `_` and `-`.
                let is_bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
                if !key.is_empty() && key.bytes().all(is_bare) {
                    write!(f, "{}", shown(key))
                } else {
                    write!(f, "\"{}\"", shown(&key.replace('\\', "\\\\").replace('"', "\\\"")))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_formatted_as_typed() {
        let tools = KeyPath::ROOT.key("tools");
        let tool = tools.key("word_count");
        assert_eq!(KeyPath::ROOT.to_string(), "");
        assert_eq!(tool.to_string(), "tools.word_count");
        assert_eq!(
            tool.key("grants").index(2).key("mode").to_string(),
            "tools.word_count.grants[2].mode"
        );
        assert_eq!(KeyPath::ROOT.key("a.b").key("c \"d\"").to_string(), r#""a.b"."c \"d\"""#);
        assert_eq!(KeyPath::ROOT.key("").to_string(), r#""""#);
    }
}
