//! Errors of counting a call.

use std::path::PathBuf;

use kitbag_base::text::shown;
use kitbag_policy::RateExceeded;

/// Why a call is not counted.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// A rate does not allow the call now.
    #[error("the rate `{}` is exhausted", used_up.rate)]
    UsedUp {
        /// The index in `counted` of the rate that takes longest to allow a call.
        at: usize,
        /// The rate, and the time until all rates allow a call.
        used_up: RateExceeded,
    },
    /// The counters cannot be read or written.
    #[error(transparent)]
    Counts(#[from] CountsError),
}

/// The counters cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error(
    "the counts of calls in `{}` cannot be kept: {reason}",
    shown(&path.to_string_lossy())
)]
pub struct CountsError {
    /// The file or directory.
    pub path: PathBuf,
    /// The problem and its fix.
    pub reason: String,
}
