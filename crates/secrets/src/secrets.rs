//! The secrets of one configuration.

use std::fmt;
use std::sync::OnceLock;

use kitbag_policy::SecretName;

use crate::call_end::CallEnd;
use crate::leaks::{AllowedLeak, Leaks};
use crate::read_error::ReadError;
use crate::source::ReadSecret;
use crate::value::SecretValue;

/// Reads values and finds leaks. Nothing is read or built before the first request of a tool.
pub struct Secrets {
    reader: Box<dyn ReadSecret>,
    allowed: Vec<AllowedLeak>,
    leaks: OnceLock<Leaks>,
}

impl Secrets {
    /// Reads values with `reader`; `allowed` findings are not treated as keys or tokens.
    pub fn new(reader: impl ReadSecret + 'static, allowed: Vec<AllowedLeak>) -> Self {
        Self { reader: Box::new(reader), allowed, leaks: OnceLock::new() }
    }

    /// Reads a value for the call that ends with `end`.
    ///
    /// # Errors
    ///
    /// [`ReadError`] has the reason.
    pub fn read(&self, name: &SecretName, end: &CallEnd) -> Result<SecretValue, ReadError> {
        self.reader.read(name, end)
    }

    /// Returns the built-in rules for keys and tokens.
    pub fn leaks(&self) -> &Leaks {
        self.leaks.get_or_init(|| Leaks::new(self.allowed.clone()))
    }
}

impl Default for Secrets {
    /// Provides no values and allows no findings.
    fn default() -> Self {
        Self::new(NoValues, Vec::new())
    }
}

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
