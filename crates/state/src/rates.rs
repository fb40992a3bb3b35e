//! How often tools were called: counts that are kept in memory, or in a file that every
//! process of the user shares.
//!
//! What a rate allows is decided by `kitbag-policy`. This crate keeps what was spent, so
//! that no count is lost: a file is locked, read, written beside its place and renamed.
//! Nothing is read or written before the first call that has a rate.

mod entries;
mod error;
mod file;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::WorkspaceState;
use kitbag_policy::Rates;

pub use error::{CountsError, TakeError};

use crate::rates::entries::Entries;
use crate::rates::file::CountsFile;

/// The most tools and callers of which something is kept. Beyond them, those that are over
/// first are forgotten.
const MOST_ENTRIES: usize = 10_000;

/// What was spent of the rates of one workspace's tools.
#[derive(Debug)]
pub struct Counts {
    place: Backing,
}

/// Where counts are kept.
#[derive(Debug)]
enum Backing {
    Memory(Mutex<Entries>),
    File(CountsFile),
}

/// Rates of a call, and the tool whose calls they count.
#[derive(Clone, Copy, Debug)]
pub struct RatedTool<'a> {
    /// The rates.
    pub rates: &'a Rates,
    /// The tool. Calls by another name for it count, too.
    pub tool: &'a str,
}

impl Counts {
    /// Counts that end with this value.
    pub fn in_memory() -> Self {
        Self { place: Backing::Memory(Mutex::default()) }
    }

    /// The counts of a workspace in the state directory, which every process of the user
    /// shares. Both paths are absolute. Nothing is looked at before a call is counted.
    pub fn in_directory(state: &Path, workspace: &Path) -> Self {
        Self { place: Backing::File(CountsFile::new(WorkspaceState::new(state, workspace))) }
    }

    /// Whether they end with this value.
    pub fn are_in_memory(&self) -> bool {
        matches!(self.place, Backing::Memory(_))
    }

    /// Counts a call, where all of its rates allow it. They hold for each caller by itself.
    /// No tool stands twice in `counted`.
    ///
    /// # Errors
    ///
    /// [`TakeError::UsedUp`] where a rate does not allow it now; then nothing is counted.
    /// [`TakeError::Counts`] where the counts cannot be kept: without them no call is allowed.
    pub fn take(&self, counted: &[RatedTool<'_>], caller: &str) -> Result<(), TakeError> {
        self.take_at(counted, caller, now())
    }

    /// As [`take`](Self::take), at a time in nanoseconds since 1970.
    fn take_at(&self, counted: &[RatedTool<'_>], caller: &str, now: u64) -> Result<(), TakeError> {
        let counted: Vec<_> = counted.iter().map(|it| (it.rates, key(it.tool, caller))).collect();
        match &self.place {
            Backing::Memory(entries) => {
                let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                entries.take(&counted, now, MOST_ENTRIES)
            }
            Backing::File(file) => file.change(|entries| entries.take(&counted, now, MOST_ENTRIES)),
        }
    }
}

/// What stands for a tool and a caller: it has a fixed size and names neither.
fn key(tool: &str, caller: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in [tool, caller] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// The time in nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
