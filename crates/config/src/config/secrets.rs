//! The secrets of the user, without their values, and the store of the values.

use std::path::PathBuf;

use kitbag_base::shell;
use kitbag_policy::{Grants, Placement, SecretPlace, SecretSource};
use kitbag_secrets::AllowedLeak;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::layers::origin::{Origin, Sourced};

/// A secret of the user: the source of its value, and its destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The place in the user config.
    pub origin: Origin,
    /// The source of the value. Default: the store.
    pub source: Sourced<SecretSource>,
    /// The destinations of the secret. Default: none.
    pub to: Sourced<Vec<SecretPlace>>,
    /// The way the host adds the secret to a request. Default: as a bearer token.
    pub placement: Sourced<Placement>,
    /// `true` if the placeholder is replaced in the query, and in the body, in addition to headers.
    /// Default: neither.
    pub placeholder: Sourced<(bool, bool)>,
}

/// The store of secret values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretStore {
    /// The kind of store. `None`: not chosen yet.
    pub kind: Option<Sourced<SecretStoreKind>>,
    /// The encrypted file; absolute. Default: `secrets.age` in the state directory. `None`:
    /// there is no state directory.
    pub file: Option<Sourced<PathBuf>>,
    /// The file with its key; absolute. Default: `secrets.key` beside the user config. `None`: the
    /// path of the user config is unknown.
    pub key_file: Option<Sourced<PathBuf>>,
    /// The program that prints the passphrase, with its arguments. `None`: the passphrase is in the
    /// variable `KITBAG_PASSPHRASE`.
    pub passphrase_command: Option<Sourced<Vec<String>>>,
}

/// The kind of a store, and the way it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum SecretStoreKind {
    /// An encrypted file, with the key in another file.
    KeyFile,
    /// An encrypted file, with a passphrase.
    Passphrase,
    /// The keyring of the system.
    Keyring,
}

/// A string that looks like a key or a token but is not secret, by the user config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeakAllowance {
    /// The allowed leak.
    pub leak: AllowedLeak,
    /// The reason for the allowance; not empty.
    pub reason: String,
}

/// Returns the command that sets a secret of this name, with the destinations that these grants
/// allow.
pub fn set_secret_command(name: &str, grants: &Grants) -> String {
    let mut places = secret_destinations(grants);
    if places.is_empty() {
        places.push("https://HOST/**".to_owned());
    }
    let to = places.iter().flat_map(|place| ["--to", place]);
    shell::command(["kitbag", "secret", "set", name].into_iter().chain(to))
}

/// Returns the possible destinations of a secret for a tool with these grants: the patterns of its
/// requests that can be destinations.
pub fn secret_destinations(grants: &Grants) -> Vec<String> {
    let patterns = grants.http.grants.iter().map(|grant| grant.url.to_string());
    let mut places: Vec<_> =
        patterns.filter(|pattern| SecretPlace::new(pattern, true).is_ok()).collect();
    places.sort_unstable();
    places.dedup();
    places
}

impl SecretStoreKind {
    /// Returns the value as it is written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeyFile => "key-file",
            Self::Passphrase => "passphrase",
            Self::Keyring => "keyring",
        }
    }
}
