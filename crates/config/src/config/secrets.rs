//! The secrets of the user, without their values, and what keeps those.

use std::path::PathBuf;

use kitbag_base::shell;
use kitbag_policy::{Grants, Placement, SecretPlace, SecretSource};
use kitbag_secrets::AllowedLeak;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::layers::origin::{Origin, Sourced};

/// A secret of the user: where its value comes from, and where it may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Where it stands in the user's own file.
    pub origin: Origin,
    /// Where its value comes from. Default: the store.
    pub source: Sourced<SecretSource>,
    /// Where it may go. Default: nowhere.
    pub to: Sourced<Vec<SecretPlace>>,
    /// How the host adds it to a request. Default: as a bearer token.
    pub placement: Sourced<Placement>,
    /// Where its placeholder is replaced besides headers: in the query, and in the body.
    /// Default: in neither.
    pub placeholder: Sourced<(bool, bool)>,
}

/// What keeps the values of secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretStore {
    /// What it is, and how it is opened. `None`: none was chosen yet.
    pub kind: Option<Sourced<SecretStoreKind>>,
    /// The encrypted file; absolute. Default: `secrets.age` in the state directory. `None`:
    /// there is no such directory.
    pub file: Option<Sourced<PathBuf>>,
    /// The file with its key; absolute. Default: `secrets.key` beside the user's own file.
    /// `None`: it is not known where that is.
    pub key_file: Option<Sourced<PathBuf>>,
    /// The program that writes its passphrase, and that program's arguments. `None`: the
    /// variable `KITBAG_PASSPHRASE` has it.
    pub passphrase_command: Option<Sourced<Vec<String>>>,
}

/// What a store is, and how it is opened.
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

/// Something that looks like a key or a token and is none, as the user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeakAllowance {
    /// What is meant.
    pub leak: AllowedLeak,
    /// Why it is none; not empty.
    pub reason: String,
}

/// The command that sets a secret of this name, to go where these grants let a tool send requests.
pub fn set_secret_command(name: &str, grants: &Grants) -> String {
    let mut places = secret_destinations(grants);
    if places.is_empty() {
        places.push("https://HOST/**".to_owned());
    }
    let to = places.iter().flat_map(|place| ["--to", place]);
    shell::command(["kitbag", "secret", "set", name].into_iter().chain(to))
}

/// Where a tool with these grants could take a secret: the patterns of its requests that can be a
/// place of one.
pub fn secret_destinations(grants: &Grants) -> Vec<String> {
    let patterns = grants.http.grants.iter().map(|grant| grant.url.to_string());
    let mut places: Vec<_> =
        patterns.filter(|pattern| SecretPlace::new(pattern, true).is_ok()).collect();
    places.sort_unstable();
    places.dedup();
    places
}

impl SecretStoreKind {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeyFile => "key-file",
            Self::Passphrase => "passphrase",
            Self::Keyring => "keyring",
        }
    }
}
