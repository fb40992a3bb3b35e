//! Why something was not kept or read.

use std::path::{Path, PathBuf};

use crate::StateError;
use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use kitbag_policy::{MissingGrant, StorageGrant};
use rusqlite::ErrorCode;

use crate::storage::bounds::{ANSWER_KEYS, KEY_BYTES};

/// A use of storage that failed. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// A key is empty or too long.
    #[error("a key has 1 to {KEY_BYTES} bytes, and this one {bytes}")]
    Key {
        /// Its length.
        bytes: usize,
    },
    /// It would be more than is granted.
    #[error("the storage is full: {0}")]
    Quota(#[from] QuotaExceeded),
    /// A value that is to be incremented is not a number, or would be too large for one.
    #[error("the value of `{}` {reason}", shown(key))]
    Number {
        /// Its key.
        key: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More keys were named at once than may be.
    #[error("{count} keys at once; the most is {ANSWER_KEYS}")]
    TooManyKeys {
        /// How many.
        count: usize,
    },
    /// What is asked for has more bytes than may be given at once.
    #[error("what is asked for has more than {limit}, the most at once; ask for fewer keys")]
    Answer {
        /// The most.
        limit: ByteSize,
    },
    /// Other calls write, and go on.
    #[error("the storage is busy: other calls write to it; try again")]
    Busy,
    /// There is no room left for the file.
    #[error("the disk with `{}` is full; make room, and try again", shown_path(path))]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The file is not one that was written here, or not all of it.
    #[error(
        "the storage in `{}` is damaged: {reason}; nothing of it is read or written: restore it, \
         or move it away with the files beside it whose names start with `{}` to begin anew",
        shown_path(path),
        shown(&path.file_name().unwrap_or_default().to_string_lossy())
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file or its directory cannot be used.
    #[error(transparent)]
    Unusable(#[from] StateError),
}

/// Which part of a grant is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    /// The bytes of all keys and values.
    #[error(
        "{} of {} are used, and this would make them {}",
        ByteSize::bytes(*used),
        grant.quota(),
        ByteSize::bytes(*needed)
    )]
    Bytes {
        /// How many are used.
        used: u64,
        /// How many would be.
        needed: u64,
        /// The grant.
        grant: StorageGrant,
    },
    /// The number of keys.
    #[error("{used} of {} keys are used, and this would make them {needed}", grant.keys())]
    Keys {
        /// How many there are.
        used: u64,
        /// How many there would be.
        needed: u64,
        /// The grant.
        grant: StorageGrant,
    },
}

impl StorageError {
    /// It without what only a person should read, such as where the file lies: as a tool
    /// reads it.
    pub fn for_tool(&self) -> String {
        match self {
            Self::DiskFull { .. } => "the disk is full".to_owned(),
            Self::Damaged { .. } => "the storage is damaged".to_owned(),
            Self::Unusable(_) => "the storage cannot be used".to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether a person has to do something about it.
    pub fn needs_person(&self) -> bool {
        use StorageError::{Damaged, DiskFull, Quota, Unusable};
        matches!(self, Quota(_) | DiskFull { .. } | Damaged { .. } | Unusable(_))
    }

    /// The setting that would allow it: twice the quota as often as it takes. `None`: none does.
    pub fn missing(&self) -> Option<MissingGrant> {
        let Self::Quota(exceeded) = self else { return None };
        let raised = |granted: u64, needed: u64| {
            let raised = std::iter::successors(Some(granted.max(1)), |size| size.checked_mul(2));
            raised.skip(1).find(|size| *size >= needed)
        };
        let grant = match exceeded {
            QuotaExceeded::Bytes { needed, grant, .. } => {
                let quota = raised(grant.quota().as_u64(), *needed)?;
                StorageGrant::new(Some(ByteSize::bytes(quota)), Some(grant.keys()))
            }
            QuotaExceeded::Keys { needed, grant, .. } => {
                StorageGrant::new(Some(grant.quota()), Some(raised(grant.keys(), *needed)?))
            }
        };
        Some(MissingGrant::setting(StorageGrant::KEY, grant.ok()?.as_setting()))
    }

    /// What SQLite says of a file.
    pub(crate) fn of(error: rusqlite::Error, path: &Path) -> Self {
        let path = path.to_owned();
        let reason = error.to_string();
        // The growth of the file that processes share: the disk is full.
        const SHARED_MEMORY_SIZE: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy,
                ErrorCode::DiskFull => Self::DiskFull { path },
                _ if failure.extended_code == SHARED_MEMORY_SIZE => Self::DiskFull { path },
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                    Self::Damaged { path, reason }
                }
                // A table or column is missing: statements are fixed.
                ErrorCode::Unknown => Self::Damaged { path, reason },
                _ => Self::Unusable(StateError { path, reason }),
            },
            // A column of another type, or a row that is always there.
            _ => Self::Damaged { path, reason },
        }
    }
}

fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).to_string()
}
