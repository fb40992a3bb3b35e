//! The secrets of one configuration.

use std::fmt;
use std::sync::{Arc, OnceLock};

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

    /// Adds a value to the secrets of a configuration.
    pub fn with_value(secrets: Arc<Self>, name: SecretName, value: SecretValue) -> Self {
        let allowed = secrets.allowed.clone();
        Self::new(WithValue { secrets, name, value }, allowed)
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

struct WithValue {
    secrets: Arc<Secrets>,
    name: SecretName,
    value: SecretValue,
}

impl ReadSecret for WithValue {
    fn read(&self, name: &SecretName, end: &CallEnd) -> Result<SecretValue, ReadError> {
        match *name == self.name {
            true => Ok(self.value.clone()),
            false => self.secrets.read(name, end),
        }
    }
}

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
