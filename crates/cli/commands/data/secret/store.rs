//! The secret store.

use std::io::{self, IsTerminal};

use kitbag::config::SecretStoreKind;
use kitbag::secret_store::Store;
use kitbag::secrets::{CallEnd, ReadError, SecretValue};
use kitbag::{Config, open_store};

use crate::error::CliError;

/// Opens the store. If no passphrase is configured, asks on the terminal, twice for a new one.
pub(crate) fn open(
    config: &Config,
    kind: SecretStoreKind,
    is_new: bool,
    end: &CallEnd,
) -> Result<Store, CliError> {
    let prompt = |text| {
        let failed = |error: io::Error| ReadError::Store { reason: error.to_string() };
        let typed = rpassword::prompt_password(text).map_err(failed)?;
        SecretValue::new(typed.into()).map_err(ReadError::from)
    };
    let ask = || {
        if !io::stderr().is_terminal() {
            return Ok(None);
        }
        let passphrase = prompt("Passphrase of the store: ")?;
        if is_new && prompt("Once more: ")?.reveal() != passphrase.reveal() {
            return Err(ReadError::Store { reason: "the two passphrases differ".into() });
        }
        Ok(Some(passphrase))
    };
    let opened = open_store(&config.secret_store, kind, end, ask);
    opened.map_err(CliError::ClosedStore)
}
