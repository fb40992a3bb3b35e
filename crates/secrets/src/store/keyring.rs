//! A store in the system keyring.
//!
//! An entry has the label `kitbag: NAME`, and attributes for the application and the secret.
//! Programs of the same user can read it.

#[cfg(target_os = "macos")]
#[path = "keyring/keychain.rs"]
mod system;
#[cfg(not(target_os = "macos"))]
#[path = "keyring/secret_service.rs"]
mod system;

use crate::{CallEnd, SecretValue};
use kitbag_policy::SecretName;

use crate::store::error::StoreError;

/// The application attribute of kitbag's entries.
const APPLICATION: &str = "kitbag";

/// The keyring of the user's session.
#[derive(Default)]
pub struct Keyring {
    _private: (),
}

impl Keyring {
    pub(crate) fn names(&self, end: &CallEnd) -> Result<Vec<SecretName>, StoreError> {
        let mut names = system::names(end)?;
        names.sort();
        names.dedup();
        Ok(names)
    }

    pub(crate) fn get(
        &self,
        name: &SecretName,
        end: &CallEnd,
    ) -> Result<Option<SecretValue>, StoreError> {
        let bytes = system::get(name, end)?;
        Ok(bytes.map(SecretValue::new).transpose()?)
    }

    pub(crate) fn set(
        &self,
        name: &SecretName,
        value: &SecretValue,
        end: &CallEnd,
    ) -> Result<bool, StoreError> {
        system::set(name, value, end)
    }

    pub(crate) fn delete(&self, name: &SecretName, end: &CallEnd) -> Result<bool, StoreError> {
        system::delete(name, end)
    }
}

/// Returns the label that a person sees.
fn label(name: &SecretName) -> String {
    format!("{APPLICATION}: {name}")
}
