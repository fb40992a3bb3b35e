//! Names of files that look like secrets.

use kitbag_fs_guard::SecretNames;

use crate::layers::origin::Sourced;

/// Changes to the built-in list of names that look like secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFiles {
    /// Globs of additional names, from every layer. Default: none.
    pub names: Sourced<Vec<String>>,
    /// Globs of names that are not secrets, from the user config only. Default: none.
    pub except: Sourced<Vec<String>>,
}

impl SecretFiles {
    pub(crate) fn secret_names(&self) -> SecretNames {
        SecretNames::new(&self.names.value, &self.except.value)
    }
}

impl Default for SecretFiles {
    fn default() -> Self {
        Self { names: Sourced::default(Vec::new()), except: Sourced::default(Vec::new()) }
    }
}
