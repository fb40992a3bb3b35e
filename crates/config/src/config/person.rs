//! People who use a shared server, each with a token.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use kitbag_base::text::shown;
use kitbag_glob::Glob;

use crate::layers::origin::{Origin, Sourced};
use crate::report::text::not_a_glob;

/// The name of a person, which matches `^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,47}$`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PersonName(String);

/// The error for a string that is not a valid name of a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not the name of a person: it takes letters, digits, `_`, `-` and `.`, does not start \
     with `-` or `.`, and has at most {max} characters",
    shown(name), max = PersonName::MAX_LEN
)]
pub struct PersonNameError {
    /// The invalid name.
    pub name: String,
}

/// A person with a token.
#[derive(Clone, Debug)]
pub struct Person {
    /// The place of the table.
    pub origin: Origin,
    /// The SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The names and globs of the tools offered to the person. `None`: every tool that the server
    /// offers.
    pub tools: Option<Sourced<Vec<String>>>,
    pub(crate) globs: Vec<Glob>,
}

impl Person {
    /// Checks names and globs of tools.
    ///
    /// # Errors
    ///
    /// The problem of the first pattern that is not a glob.
    pub fn check_tools(patterns: &[String]) -> Result<(), String> {
        let check = |text: &String| Glob::new(text).map(drop).map_err(|why| not_a_glob(text, why));
        patterns.iter().try_for_each(check)
    }
}

impl PersonName {
    /// The longest name, in bytes (all of them ASCII).
    pub const MAX_LEN: usize = 48;

    /// Creates a name if the string is valid.
    ///
    /// # Errors
    ///
    /// [`PersonNameError`] contains the string if it does not have the form above.
    pub fn new(name: impl Into<String>) -> Result<Self, PersonNameError> {
        let name = name.into();
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        let is_name = (1..=Self::MAX_LEN).contains(&name.len())
            && name.bytes().all(fits)
            && !name.starts_with(['-', '.']);
        if is_name { Ok(Self(name)) } else { Err(PersonNameError { name }) }
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PersonName {
    type Err = PersonNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl Borrow<str> for PersonName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PersonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
