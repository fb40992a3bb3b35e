//! Why a log cannot be written, read or verified.

use std::io;
use std::path::{Path, PathBuf};

use crate::StateError;
use kitbag_base::text::shown;

/// A log that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// A file or directory of it cannot be read or written.
    #[error("the audit log `{}` cannot be used: {reason}", shown(&path.to_string_lossy()))]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It is not as kitbag has written it.
    #[error("{damage}")]
    Damaged {
        /// What is wrong.
        damage: Box<Damage>,
    },
}

/// What is wrong with a log that was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A line was changed, or is none.
    #[error(
        "the audit log was changed: line {line} of `{}` is not what the line after it was written \
         behind",
        shown(&path.to_string_lossy())
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// A line was not written by kitbag.
    #[error(
        "the audit log was changed: line {line} of `{}` was not written by kitbag",
        shown(&path.to_string_lossy())
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// Lines were removed.
    #[error(
        "the audit log was changed: {} missing before line {line} of `{}`",
        are(*lines),
        shown(&path.to_string_lossy())
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The line behind them, from 1.
        line: u64,
        /// How many are missing.
        lines: u64,
    },
    /// Its end was cut off.
    #[error(
        "the audit log was cut{}: `{}` has {found} bytes, and kitbag wrote {expected}",
        line.map(|line| format!(" after line {line}")).unwrap_or_default(),
        shown(&path.to_string_lossy())
    )]
    Cut {
        /// The file.
        path: PathBuf,
        /// The last line that is there, from 1. `None`: the file was not read.
        line: Option<u64>,
        /// How many bytes there are.
        found: u64,
        /// How many there have to be at least.
        expected: u64,
    },
    /// A file was removed.
    #[error(
        "the audit log was changed: `{}` is missing{}",
        shown(&path.to_string_lossy()),
        lines.map(|lines| format!(", with {}", counted(lines))).unwrap_or_default()
    )]
    Removed {
        /// The first file that is missing.
        path: PathBuf,
        /// How many lines are missing with it. `None`: this is unknown, since the lines before
        /// them are gone as well.
        lines: Option<u64>,
    },
    /// A file was added.
    #[error(
        "the audit log was changed: `{}` was not written by kitbag",
        shown(&path.to_string_lossy())
    )]
    Added {
        /// The file.
        path: PathBuf,
    },
    /// The last line is not the one that was written last.
    #[error(
        "the audit log was changed: the last line of `{}` is not the one that was written last",
        shown(&path.to_string_lossy())
    )]
    Last {
        /// The file.
        path: PathBuf,
    },
    /// The file with the hash of the last line is missing.
    #[error(
        "the audit log was changed: `{}` is missing, which holds the hash of the last line; to \
         begin a new log, move the directory away",
        shown(&path.to_string_lossy())
    )]
    NoHead {
        /// The file.
        path: PathBuf,
    },
}

impl AuditError {
    pub(crate) fn unusable(path: &Path, reason: impl ToString) -> Self {
        Self::Unusable { path: path.to_owned(), reason: reason.to_string() }
    }

    /// An error of the system at a file.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::unusable(path, error)
    }
}

impl From<StateError> for AuditError {
    fn from(StateError { path, reason }: StateError) -> Self {
        Self::Unusable { path, reason }
    }
}

impl From<Damage> for AuditError {
    fn from(damage: Damage) -> Self {
        Self::Damaged { damage: Box::new(damage) }
    }
}

/// Such as `1 line` and `2 lines`.
fn counted(lines: u64) -> String {
    format!("{lines} line{}", if lines == 1 { "" } else { "s" })
}

fn are(lines: u64) -> String {
    format!("{} {}", counted(lines), if lines == 1 { "is" } else { "are" })
}
