//! Why a store does not do what it is asked.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::{ReadError, ValueError};
use kitbag_base::text::shown;

/// The largest file that is taken for a store.
pub(crate) const MOST_BYTES: u64 = 16 << 20;

/// Why a store cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("`{}`", shown(&path.to_string_lossy()))]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Other users can read or write it.
    #[error(
        "`{}` can be read or written by other users, or belongs to one; use `chmod 600`, and \
         change what it kept",
        shown(&path.to_string_lossy())
    )]
    Shared {
        /// The file.
        path: PathBuf,
    },
    /// There is a store, and its key is gone.
    #[error(
        "the key `{}` is gone, without which `{}` cannot be opened; put it back, or remove the \
         store and set the secrets anew",
        shown(&key.to_string_lossy()),
        shown(&store.to_string_lossy())
    )]
    NoKey {
        /// The key.
        key: PathBuf,
        /// The store.
        store: PathBuf,
    },
    /// It is not a key.
    #[error("`{}` holds no key of age", shown(&path.to_string_lossy()))]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
    /// The key does not open it, or it has been changed.
    #[error("`{}` cannot be opened with its {key}", shown(&path.to_string_lossy()))]
    Locked {
        /// The store.
        path: PathBuf,
        /// `key` or `passphrase`.
        key: &'static str,
    },
    /// What is inside is not what kitbag writes.
    #[error("`{}` does not hold what kitbag keeps in it", shown(&path.to_string_lossy()))]
    Content {
        /// The store.
        path: PathBuf,
    },
    /// It would become larger than it may be.
    #[error("`{}` would be larger than {MOST_BYTES} bytes", shown(&path.to_string_lossy()))]
    Full {
        /// The store.
        path: PathBuf,
    },
    /// It cannot be encrypted.
    #[error("`{}` cannot be encrypted: {reason}", shown(&path.to_string_lossy()))]
    Encrypt {
        /// The store.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// What is kept is no value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// There is no keyring that could be asked.
    #[error(
        "there is no keyring of the system to ask ({reason}); `--store key-file` keeps values in a \
         file"
    )]
    NoKeyring {
        /// Why not.
        reason: String,
    },
    /// The keyring stays locked.
    #[error("the keyring is locked, and unlocking it was declined")]
    LockedKeyring,
    /// The keyring, or the person it asks, does not answer.
    #[error("the keyring did not answer within {} s", time.as_secs())]
    SlowKeyring {
        /// How long it had.
        time: Duration,
    },
    /// The keyring refuses.
    #[error("the keyring: {reason}")]
    Keyring {
        /// Why.
        reason: String,
    },
    /// The call that needs the value has ended.
    #[error(transparent)]
    Read(#[from] ReadError),
}
