//! Stores of secret values: an encrypted file, or the system keyring.
//!
//! A file is in `age` format, so that other programs can read it, and contains a JSON object of
//! names and values. Writes are atomic, and concurrent processes do not lose each other's changes.
//! A keyring belongs to the user's session: the Secret Service of the desktop, or the macOS
//! keychain.

mod error;
mod file;
mod keyring;

pub use error::StoreError;
pub use file::{FileStore, Key};
pub use keyring::Keyring;

use crate::{CallEnd, ReadError, ReadSecret, SecretValue};
use kitbag_base::text::shown;
use kitbag_policy::SecretName;

/// A store of values.
pub enum Store {
    /// An encrypted file.
    File(FileStore),
    /// The system keyring, which may ask the user.
    Keyring(Keyring),
}

impl Store {
    /// Describes the location for people.
    pub fn place(&self) -> String {
        match self {
            Self::File(store) => store.path().display().to_string(),
            Self::Keyring(_) => "keyring".to_owned(),
        }
    }

    /// Returns the names of the stored values. Waits for the user at most until `end`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be opened.
    pub fn names(&self, end: &CallEnd) -> Result<Vec<SecretName>, StoreError> {
        match self {
            Self::File(store) => store.names(),
            Self::Keyring(keyring) => keyring.names(end),
        }
    }

    /// Returns the value with this name, if any.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be opened.
    pub fn get(&self, name: &SecretName, end: &CallEnd) -> Result<Option<SecretValue>, StoreError> {
        match self {
            Self::File(store) => store.get(name),
            Self::Keyring(keyring) => keyring.get(name, end),
        }
    }

    /// Stores a value. Returns true if it replaced an existing value.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the stored values are unchanged.
    pub fn set(
        &self,
        name: &SecretName,
        value: &SecretValue,
        end: &CallEnd,
    ) -> Result<bool, StoreError> {
        match self {
            Self::File(store) => store.set(name, value),
            Self::Keyring(keyring) => keyring.set(name, value, end),
        }
    }

    /// Removes a value. Returns true if it existed.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the stored values are unchanged.
    pub fn delete(&self, name: &SecretName, end: &CallEnd) -> Result<bool, StoreError> {
        match self {
            Self::File(store) => store.delete(name),
            Self::Keyring(keyring) => keyring.delete(name, end),
        }
    }
}

impl ReadSecret for Store {
    fn read(&self, name: &SecretName, end: &CallEnd) -> Result<SecretValue, ReadError> {
        match self.get(name, end) {
            Ok(value) => value.ok_or_else(|| ReadError::missing(name)),
            Err(StoreError::Value(error)) => Err(error.into()),
            Err(StoreError::Read(error)) => Err(error),
            Err(StoreError::File { path, source }) => {
                let reason = format!("`{}`: {source}", shown(&path.to_string_lossy()));
                Err(ReadError::Store { reason })
            }
            Err(error) => Err(ReadError::Store { reason: error.to_string() }),
        }
    }
}
