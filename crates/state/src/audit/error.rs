//! Errors of writing, reading and verifying the log.

use std::io;
use std::path::{Path, PathBuf};

use crate::StateError;
use kitbag_base::text::shown;

/// Why the log cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// A file or directory of the log cannot be read or written.
    #[error("the audit log `{}` cannot be used: {reason}", shown(&path.to_string_lossy()))]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The log was modified.
    #[error("{damage}")]
    Damaged {
        /// The damage.
        damage: Box<Damage>,
    },
}

/// The damage of a modified log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A line was changed or is not a line.
    #[error(
        "the audit log was changed: line {line} of `{}` does not match the hash in the next \
         line",
        shown(&path.to_string_lossy())
    )]
    Changed {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
    },
    /// A line was not written by kitbag.
    #[error(
        "the audit log was changed: line {line} of `{}` was not written by kitbag",
        shown(&path.to_string_lossy())
    )]
    Foreign {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
    },
    /// Lines were removed.
    #[error(
        "the audit log was changed: {} missing before line {line} of `{}`",
        are(*lines),
        shown(&path.to_string_lossy())
    )]
    Missing {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line after them, from 1.
        line: u64,
        /// The number of missing lines.
        lines: u64,
    },
    /// The file was truncated.
    #[error(
        "the audit log was truncated{}: `{}` has {found} bytes, but kitbag wrote {expected}",
        line.map(|line| format!(" after line {line}")).unwrap_or_default(),
        shown(&path.to_string_lossy())
    )]
    Cut {
        /// The path of the file.
        path: PathBuf,
        /// The number of the last line, from 1. `None`: the file was not read.
        line: Option<u64>,
        /// The length in bytes.
        found: u64,
        /// The minimum length in bytes.
        expected: u64,
    },
    /// A file was removed.
    #[error(
        "the audit log was changed: `{}` is missing{}",
        shown(&path.to_string_lossy()),
        lines.map(|lines| format!(", with {}", counted(lines))).unwrap_or_default()
    )]
    Removed {
        /// The first missing file.
        path: PathBuf,
        /// The number of missing lines. `None` if it is unknown, since the lines before them are
        /// missing as well.
        lines: Option<u64>,
    },
    /// A file was added.
    #[error(
        "the audit log was changed: `{}` was not written by kitbag",
        shown(&path.to_string_lossy())
    )]
    Added {
        /// The path of the file.
        path: PathBuf,
    },
    /// The last line is not the one that was written last.
    #[error(
        "the audit log was changed: the last line of `{}` is not the one that was written last",
        shown(&path.to_string_lossy())
    )]
    Last {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file with the hash of the last line is missing.
    #[error(
        "the audit log was changed: `{}` is missing, which has the hash of the last line; to \
         start a new log, move the directory away",
        shown(&path.to_string_lossy())
    )]
    NoHead {
        /// The path of the file.
        path: PathBuf,
    },
}

impl AuditError {
    pub(crate) fn unusable(path: &Path, reason: impl ToString) -> Self {
        Self::Unusable { path: path.to_owned(), reason: reason.to_string() }
    }

    /// Converts an error of the system at a path.
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

/// Formats `1 line`, `2 lines` and so on.
fn counted(lines: u64) -> String {
    format!("{lines} line{}", if lines == 1 { "" } else { "s" })
}

fn are(lines: u64) -> String {
    format!("{} {}", counted(lines), if lines == 1 { "is" } else { "are" })
}
