//! The name of a tool.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use kitbag_base::text::shown;

/// The name of a tool, which matches `^[a-zA-Z_][a-zA-Z0-9_-]{0,47}$`.
///
/// This is the strictest form that model interfaces accept, with room for the prefixes that clients
/// add. It contains no separators, control characters or bidirectional characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

/// The error for a string that is not a valid tool name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a tool name: it takes letters, digits, `_` and `-`, starts with a letter or `_`, \
     and has at most {max} characters",
    shown(name), max = ToolName::MAX_LEN
)]
pub struct ToolNameError {
    /// The invalid name.
    pub name: String,
}

impl ToolName {
    /// The longest name, in bytes (all ASCII).
    pub const MAX_LEN: usize = 48;

    /// Creates a name if the string is valid.
    ///
    /// # Errors
    ///
    /// [`ToolNameError`] contains the string if it does not have the form above.
    pub fn new(name: impl Into<String>) -> Result<Self, ToolNameError> {
        let name = name.into();
        let mut bytes = name.bytes();
        let starts_well = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if starts_well
            && name.len() <= Self::MAX_LEN
            && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        {
            Ok(Self(name))
        } else {
            Err(ToolNameError { name })
        }
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolName {
    type Err = ToolNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for ToolName {
    type Error = ToolNameError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ToolName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: bool) {
        assert_eq!(ToolName::new(name).is_ok(), expected, "{name:?}");
    }

    #[test]
    fn names_are_short_ascii_without_separators() {
        check("learn", true);
        check("_x-1", true);
        check(&"a".repeat(48), true);
        check(&"a".repeat(49), false);
        check("", false);
        check("1st", false);
        check("-x", false);
        check("a b", false);
        check("a/b", false);
        check("a.b", false);
        check("wörd", false);
        check("a\u{202e}b", false);
        check("a\n", false);
    }

    #[test]
    fn name_errors_escape_hidden_characters() {
        let error = ToolName::new("a\u{202e}b").unwrap_err().to_string();
        assert!(error.starts_with("`a\\u{202e}b` is not a tool name"), "{error}");
    }
}
