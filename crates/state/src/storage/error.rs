//! Errors of storage.

use std::path::{Path, PathBuf};

use crate::StateError;
use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use kitbag_policy::{MissingGrant, StorageGrant};
use rusqlite::ErrorCode;

use crate::storage::bounds::{ANSWER_KEYS, KEY_BYTES};

/// Why an operation failed. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// A key is empty or too long.
    #[error("a key must have 1 to {KEY_BYTES} bytes, but this one has {bytes}")]
    Key {
        /// The length in bytes.
        bytes: usize,
    },
    /// The grant is exceeded.
    #[error("the storage is full: {0}")]
    Quota(#[from] QuotaExceeded),
    /// The value to increment is not a number, or the result is too large.
    #[error("the value of `{}` {reason}", shown(key))]
    Number {
        /// The key.
        key: String,
        /// The reason.
        reason: &'static str,
    },
    /// Too many keys in one operation.
    #[error("{count} keys in one operation; the limit is {ANSWER_KEYS}")]
    TooManyKeys {
        /// The number of keys.
        count: usize,
    },
    /// The result is too large.
    #[error("the result exceeds {limit}; request fewer keys")]
    Answer {
        /// The limit.
        limit: ByteSize,
    },
    /// Other calls are writing.
    #[error("the storage is busy: other calls write to it; try again")]
    Busy,
    /// The disk is full.
    #[error("the disk with `{}` is full; free some space, and try again", shown_path(path))]
    DiskFull {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file is damaged or was not written by kitbag.
    #[error(
        "the storage in `{}` is damaged: {reason}; it is neither read nor written: restore it, or \
         move it away with the files next to it whose names start with `{}` to start again",
        shown_path(path),
        shown(&path.file_name().unwrap_or_default().to_string_lossy())
    )]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The file or its directory cannot be used.
    #[error(transparent)]
    Unusable(#[from] StateError),
}

/// The exceeded part of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    /// The bytes of all keys and values.
    #[error(
        "{} of {} are used, and this would need {}",
        ByteSize::bytes(*used),
        grant.quota(),
        ByteSize::bytes(*needed)
    )]
    Bytes {
        /// The used bytes.
        used: u64,
        /// The required bytes.
        needed: u64,
        /// The grant.
        grant: StorageGrant,
    },
    /// The number of keys.
    #[error("{used} of {} keys are used, and this would need {needed}", grant.keys())]
    Keys {
        /// The number of used keys.
        used: u64,
        /// The number of required keys.
        needed: u64,
        /// The grant.
        grant: StorageGrant,
    },
}

impl StorageError {
    /// Formats the error for a tool, without parts that are only for a person, such as the path of
    /// the file.
    pub fn for_tool(&self) -> String {
        match self {
            Self::DiskFull { .. } => "the disk is full".to_owned(),
            Self::Damaged { .. } => "the storage is damaged".to_owned(),
            Self::Unusable(_) => "the storage cannot be used".to_owned(),
            other => other.to_string(),
        }
    }

    /// Returns true if a person must resolve the error.
    pub fn needs_person(&self) -> bool {
        use StorageError::{Damaged, DiskFull, Quota, Unusable};
        matches!(self, Quota(_) | DiskFull { .. } | Damaged { .. } | Unusable(_))
    }

    /// Returns the setting that would allow the operation: the quota, doubled as often as
    /// necessary. `None` if no setting can.
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

    /// Converts an error of SQLite.
    pub(crate) fn of(error: rusqlite::Error, path: &Path) -> Self {
        let path = path.to_owned();
        let reason = error.to_string();
        // The shared-memory file could not grow: the disk is full.
        const SHARED_MEMORY_SIZE: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy,
                ErrorCode::DiskFull => Self::DiskFull { path },
                _ if failure.extended_code == SHARED_MEMORY_SIZE => Self::DiskFull { path },
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                    Self::Damaged { path, reason }
                }
                // A table or column is missing, since the statements are fixed.
                ErrorCode::Unknown => Self::Damaged { path, reason },
                _ => Self::Unusable(StateError { path, reason }),
            },
            // A column of another type, or a missing row that always exists.
            _ => Self::Damaged { path, reason },
        }
    }
}

fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).to_string()
}
