//! Sources of values.

use std::collections::BTreeMap;
use std::time::Duration;

use kitbag_policy::{SecretName, SecretSource};

use crate::call_end::CallEnd;
use crate::command::read_command;
use crate::read_error::ReadError;
use crate::value::SecretValue;

/// Reads the value of a secret when it is used.
pub trait ReadSecret: Send + Sync {
    /// Reads the value of a secret for the call that ends with `end`. Blocking operations, such as
    /// a program, stop at that time.
    ///
    /// # Errors
    ///
    /// [`ReadError`] has the reason and does not show any part of the value.
    fn read(&self, name: &SecretName, end: &CallEnd) -> Result<SecretValue, ReadError>;
}

/// Reads secrets from the sources in the user config.
pub struct Sources {
    /// The source of each secret.
    pub sources: BTreeMap<SecretName, SecretSource>,
    /// The reader of the store. `None`: there is no store.
    pub store: Option<Box<dyn ReadSecret>>,
    /// The time limit of a command.
    pub command_time: Duration,
}

impl ReadSecret for Sources {
    fn read(&self, name: &SecretName, end: &CallEnd) -> Result<SecretValue, ReadError> {
        match self.sources.get(name) {
            None => Err(ReadError::missing(name)),
            Some(SecretSource::Store) => {
                let store = self.store.as_ref().ok_or_else(|| ReadError::missing(name))?;
                store.read(name, end)
            }
            Some(SecretSource::Variable(name)) => read_variable(name),
            Some(SecretSource::Command(command)) => read_command(command, self.command_time, end),
        }
    }
}

/// Reads a value from a variable.
///
/// # Errors
///
/// [`ReadError`] if the variable is not set or not a valid value.
pub fn read_variable(name: &str) -> Result<SecretValue, ReadError> {
    let missing = || ReadError::NoVariable { name: name.to_owned() };
    let value = std::env::var_os(name).ok_or_else(missing)?;
    Ok(SecretValue::new(value.into_encoded_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::COMMAND_TIME;

    #[test]
    fn secrets_are_read_from_their_sources() {
        let name = |text: &str| SecretName::new(text).unwrap();
        let command = ["/bin/echo", "of-the-command"].map(str::to_owned).to_vec();
        let sources = [
            (name("command"), SecretSource::Command(command)),
            (name("variable"), SecretSource::Variable("CARGO_MANIFEST_DIR".into())),
            (name("unset"), SecretSource::Variable("NO_SUCH_VARIABLE".into())),
            (name("store"), SecretSource::Store),
        ];
        let sources = Sources { sources: sources.into(), store: None, command_time: COMMAND_TIME };
        let read = |text: &str| {
            let value = sources.read(&name(text), &CallEnd::default());
            value.map_or_else(|error| error.to_string(), |value| value.reveal().to_owned())
        };
        assert_eq!(read("command"), "of-the-command");
        assert_eq!(read("variable"), env!("CARGO_MANIFEST_DIR"));
        assert_eq!(read("unset"), "the variable `NO_SUCH_VARIABLE` is not set");
        for name in ["store", "unknown"] {
            let missing = "it has no value; set one with `kitbag secret set ".to_owned();
            assert_eq!(read(name), missing + name + "`");
        }
    }
}
