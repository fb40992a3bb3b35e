//! The secrets of one configuration.

use std::fmt;
use std::sync::OnceLock;

use kitbag_policy::SecretName;

use crate::call_end::CallEnd;
use crate::leaks::{AllowedLeak, Leaks};
use crate::read_error::ReadError;
use crate::source::ReadSecret;
use crate::value::SecretValue;

/// What reads the values of secrets, and what is taken for one. Nothing is read or put
/// together before the first request of a tool.
pub struct Secrets {
    reader: Box<dyn ReadSecret>,
    allowed: Vec<AllowedLeak>,
    leaks: OnceLock<Leaks>,
}

impl Secrets {
    /// Values come from `reader`; what is `allowed` is not taken for a key or a token.
    pub fn new(reader: impl ReadSecret + 'static, allowed: Vec<AllowedLeak>) -> Self {
        Self { reader: Box::new(reader), allowed, leaks: OnceLock::new() }
    }

    /// Reads a value for the call that ends with `end`.
    ///
    /// # Errors
    ///
    /// [`ReadError`] says why there is none.
    pub fn read(&self, name: &SecretName, end: &CallEnd) -> Result<SecretValue, ReadError> {
        self.reader.read(name, end)
    }

    /// What looks like a key or a token, by the rules that come with kitbag.
    pub fn leaks(&self) -> &Leaks {
        self.leaks.get_or_init(|| Leaks::new(self.allowed.clone()))
    }
}

impl Default for Secrets {
    /// There are no values, and every finding counts.
    fn default() -> Self {
        Self::new(NoValues, Vec::new())
    }
}

/// Reads nothing.
struct NoValues;

impl ReadSecret for NoValues {
    fn read(&self, name: &SecretName, _: &CallEnd) -> Result<SecretValue, ReadError> {
        Err(ReadError::missing(name))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}
