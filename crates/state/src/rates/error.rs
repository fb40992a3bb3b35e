//! Why a call is not counted.

use std::path::PathBuf;

use kitbag_base::text::shown;
use kitbag_policy::RateExceeded;

/// A call that is not counted.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// A rate does not allow it now.
    #[error("the rate `{}` is used up", used_up.rate)]
    UsedUp {
        /// Of the rates that were to be counted, the position of those that allow a call last.
        at: usize,
        /// The rate, and when all of them allow a call again.
        used_up: RateExceeded,
    },
    /// The counts cannot be read or written.
    #[error(transparent)]
    Counts(#[from] CountsError),
}

/// Counts that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error(
    "the counts of calls in `{}` cannot be kept: {reason}",
    shown(&path.to_string_lossy())
)]
pub struct CountsError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it, and what helps.
    pub reason: String,
}
