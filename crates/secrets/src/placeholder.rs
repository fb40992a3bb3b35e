//! Placeholders, which guests receive instead of values.

use std::fmt::Write;

/// The prefix of all placeholders.
pub(crate) const PREFIX: &str = "kitbag_placeholder_";

/// The number of random bytes, which is large enough to prevent guessing.
const RANDOM_BYTES: usize = 16;

/// A string that represents the value of one secret in one call. It does not contain the value and
/// has no use elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder(String);

impl Placeholder {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)?;
        let mut text = PREFIX.to_owned();
        for byte in random {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// Returns the string. URL, form and JSON encoding do not change it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
