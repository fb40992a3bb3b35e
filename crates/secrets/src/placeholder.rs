//! Placeholders: what a guest reads in place of a value.

use std::fmt::Write;

/// What every placeholder starts with, whichever call it belongs to.
pub(crate) const PREFIX: &str = "kitbag_placeholder_";

/// Random bytes of one, too many to be guessed.
const RANDOM_BYTES: usize = 16;

/// A text that stands for the value of one secret in one call. It holds nothing of it, and
/// is of no use anywhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder(String);

impl Placeholder {
    /// A new one.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)?;
        let mut text = PREFIX.to_owned();
        for byte in random {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// Its text, which every encoding of a URL, a form or JSON leaves as it is.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
