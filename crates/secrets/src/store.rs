//! What keeps the values of secrets: an encrypted file, or the keyring of the system.
//!
//! A file has the form of `age`, so that other programs read it, too; inside is a JSON object
//! of names and values. It is written whole or not at all, and of two processes that change it
//! each starts from what the other wrote. A keyring is that of the user's session: the Secret
//! Service of the desktop, or the keychain of macOS.

mod error;
mod file;
mod keyring;

pub use error::StoreError;
pub use file::{FileStore, Key};
pub use keyring::Keyring;

use crate::{CallEnd, ReadError, ReadSecret, SecretValue};
use kitbag_base::text::shown;
use kitbag_policy::SecretName;

/// What keeps values.
pub enum Store {
    /// An encrypted file.
    File(FileStore),
    /// The keyring of the system, which may ask its user.
    Keyring(Keyring),
}

impl Store {
    /// Where it is, for a person.
    pub fn place(&self) -> String {
        match self {
            Self::File(store) => store.path().display().to_string(),
            Self::Keyring(_) => "keyring".to_owned(),
        }
    }

    /// The names of its values. It waits for its user no longer than until `end`.
    ///
    /// # Errors
    ///
    /// [`StoreError`], where it cannot be opened.
    pub fn names(&self, end: &CallEnd) -> Result<Vec<SecretName>, StoreError> {
        match self {
            Self::File(store) => store.names(),
            Self::Keyring(keyring) => keyring.names(end),
        }
    }

    /// A value, where there is one of this name.
    ///
    /// # Errors
    ///
    /// [`StoreError`], where it cannot be opened.
    pub fn get(&self, name: &SecretName, end: &CallEnd) -> Result<Option<SecretValue>, StoreError> {
        match self {
            Self::File(store) => store.get(name),
            Self::Keyring(keyring) => keyring.get(name, end),
        }
    }

    /// Keeps a value. Returns whether there was one of this name.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; what was there stays.
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

    /// Removes a value. Returns whether there was one of this name.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; what was there stays.
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
