//! Errors of stores.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::{ReadError, ValueError};
use kitbag_base::text::shown;

/// The largest file that is accepted as a store.
pub(crate) const MOST_BYTES: u64 = 16 << 20;

/// Why a store cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("`{}`", shown(&path.to_string_lossy()))]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// Other users can read or write the file.
    #[error(
        "`{}` can be read or written by other users, or belongs to another user; use `chmod \
         600`, and replace the secrets in it",
        shown(&path.to_string_lossy())
    )]
    Shared {
        /// The path of the file.
        path: PathBuf,
    },
    /// The key of an existing store is missing.
    #[error(
        "the key `{}` is missing, and `{}` cannot be opened without it; restore the key, or \
         remove the store and set the secrets again",
        shown(&key.to_string_lossy()),
        shown(&store.to_string_lossy())
    )]
    NoKey {
        /// The path of the key.
        key: PathBuf,
        /// The path of the store.
        store: PathBuf,
    },
    /// The file is not a key.
    #[error("`{}` does not contain an age key", shown(&path.to_string_lossy()))]
    NotAKey {
        /// The path of the file.
        path: PathBuf,
    },
    /// The key is wrong, or the store was modified.
    #[error("`{}` cannot be opened with its {key}", shown(&path.to_string_lossy()))]
    Locked {
        /// The path of the store.
        path: PathBuf,
        /// `key` or `passphrase`.
        key: &'static str,
    },
    /// The content does not have the format of kitbag.
    #[error("`{}` does not have the format of a secret store", shown(&path.to_string_lossy()))]
    Content {
        /// The path of the store.
        path: PathBuf,
    },
    /// The store would exceed the size limit.
    #[error("`{}` would be larger than {MOST_BYTES} bytes", shown(&path.to_string_lossy()))]
    Full {
        /// The path of the store.
        path: PathBuf,
    },
    /// Encryption failed.
    #[error("`{}` cannot be encrypted: {reason}", shown(&path.to_string_lossy()))]
    Encrypt {
        /// The path of the store.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A stored string is not a valid value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// No keyring is available.
    #[error(
        "no system keyring is available ({reason}); `--store key-file` keeps values in a \
         file"
    )]
    NoKeyring {
        /// The reason.
        reason: String,
    },
    /// The keyring is locked.
    #[error("the keyring is locked, and unlocking it was declined")]
    LockedKeyring,
    /// The keyring or its user did not answer.
    #[error("the keyring did not answer within {} s", time.as_secs())]
    SlowKeyring {
        /// The time limit.
        time: Duration,
    },
    /// The keyring returned an error.
    #[error("the keyring: {reason}")]
    Keyring {
        /// The reason.
        reason: String,
    },
    /// The call that needs the value has ended.
    #[error(transparent)]
    Read(#[from] ReadError),
}
