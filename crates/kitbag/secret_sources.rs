//! Configured sources of secret values.

use kitbag_config::{Config, Secret};
#[cfg(feature = "store")]
use kitbag_config::{SecretStoreKind, Sourced};
#[cfg(feature = "store")]
use kitbag_secrets::store::{FileStore, Key, Keyring, Store};
use kitbag_secrets::{COMMAND_TIME, Sources};
#[cfg(feature = "store")]
use kitbag_secrets::{CallEnd, ReadError, SecretValue, ValueError, read_command, read_variable};

/// The variable that contains the passphrase of the store.
pub const PASSPHRASE_VARIABLE: &str = "KITBAG_PASSPHRASE";

/// Returns the configured sources of secrets. They are read when a value is used.
pub fn secret_sources(config: &Config) -> Sources {
    let source = |secret: &Secret| secret.source.value.clone();
    let sources = config.secrets.iter().map(|(name, secret)| (name.clone(), source(secret)));
    #[cfg(feature = "store")]
    let store = Some(Box::new(ConfiguredStore { config: config.secret_store.clone() }) as _);
    #[cfg(not(feature = "store"))]
    let store = None;
    Sources { sources: sources.collect(), store, command_time: COMMAND_TIME }
}

/// The configured store, which is opened for each value that is read.
#[cfg(feature = "store")]
struct ConfiguredStore {
    config: kitbag_config::SecretStore,
}

#[cfg(feature = "store")]
impl kitbag_secrets::ReadSecret for ConfiguredStore {
    fn read(
        &self,
        name: &kitbag_policy::SecretName,
        end: &CallEnd,
    ) -> Result<SecretValue, ReadError> {
        let kind = self.config.kind.as_ref().ok_or_else(|| ReadError::missing(name))?;
        open_store(&self.config, kind.value, end, || Ok(None))?.read(name, end)
    }
}

/// Opens the configured store as `kind` specifies. `ask` asks for the passphrase if neither the
/// command nor the variable provides it; the command ends with `end`.
///
/// # Errors
///
/// [`ReadError`] if the location or the passphrase of the store is unknown.
#[cfg(feature = "store")]
pub fn open_store(
    config: &kitbag_config::SecretStore,
    kind: SecretStoreKind,
    end: &CallEnd,
    ask: impl FnOnce() -> Result<Option<SecretValue>, ReadError>,
) -> Result<Store, ReadError> {
    let unknown = |what: &str| ReadError::Store {
        reason: format!("the place of {what} is unknown: set `HOME` or `[secret_store]`"),
    };
    let key = match kind {
        SecretStoreKind::Keyring => return Ok(Store::Keyring(Keyring::default())),
        SecretStoreKind::KeyFile => {
            let file = config.key_file.as_ref().ok_or_else(|| unknown("its key"))?;
            Key::File(file.value.clone())
        }
        SecretStoreKind::Passphrase => {
            let command = config.passphrase_command.as_ref();
            let read = passphrase(command, end, ask);
            Key::Passphrase(read.map_err(|error| match error {
                ReadError::Value(ValueError::TooShort { bytes }) => ReadError::Store {
                    reason: format!(
                        "the passphrase has {bytes} bytes, but needs at least {}",
                        SecretValue::LEAST_BYTES
                    ),
                },
                ReadError::Value(error) => {
                    ReadError::Store { reason: format!("the passphrase cannot be used: {error}") }
                }
                error => error,
            })?)
        }
    };
    let file = config.file.as_ref().ok_or_else(|| unknown("the store"))?;
    Ok(Store::File(FileStore::new(&file.value, key)))
}

/// Returns the passphrase from the command, the variable or a person, in this order.
#[cfg(feature = "store")]
fn passphrase(
    command: Option<&Sourced<Vec<String>>>,
    end: &CallEnd,
    ask: impl FnOnce() -> Result<Option<SecretValue>, ReadError>,
) -> Result<SecretValue, ReadError> {
    if let Some(command) = command {
        return read_command(&command.value, COMMAND_TIME, end);
    }
    match read_variable(PASSPHRASE_VARIABLE) {
        Err(error @ ReadError::NoVariable { .. }) => ask()?.ok_or(error),
        read => read,
    }
}
