//! Rate counters: in memory, or in a file that all processes of the user share.
//!
//! `kitbag-policy` decides what a rate allows. This crate stores the spent amount without losing
//! counted: it locks and reads the file, writes a temporary file and renames it. Nothing is read or
//! written before the first call with a rate.

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

/// Maximum number of entries for tools and callers. Beyond that, the entries that expire first are
/// removed.
const MOST_ENTRIES: usize = 10_000;

/// The spent part of the rates of one workspace's tools.
#[derive(Debug)]
pub struct Counts {
    place: Backing,
}

/// The place of the counters.
#[derive(Debug)]
enum Backing {
    Memory(Mutex<Entries>),
    File(CountsFile),
}

/// The rates of a call and the tool to count it for.
#[derive(Clone, Copy, Debug)]
pub struct RatedTool<'a> {
    /// The rates.
    pub rates: &'a Rates,
    /// The tool. Calls under other names of the tool are counted as well.
    pub tool: &'a str,
}

impl Counts {
    /// Creates counters that end with this value.
    pub fn in_memory() -> Self {
        Self { place: Backing::Memory(Mutex::default()) }
    }

    /// Creates the counters of a workspace in the state directory, which all processes of the user
    /// share. Both paths must be absolute. Accesses no files until a call is counted.
    pub fn in_directory(state: &Path, workspace: &Path) -> Self {
        Self { place: Backing::File(CountsFile::new(WorkspaceState::new(state, workspace))) }
    }

    /// Returns true if the counters end with this value.
    pub fn are_in_memory(&self) -> bool {
        matches!(self.place, Backing::Memory(_))
    }

    /// Counts a call if all of its rates allow it. Each caller has its own counters. The tools in
    /// `counted` must be distinct.
    ///
    /// # Errors
    ///
    /// [`TakeError::UsedUp`] if a rate does not allow the call now; nothing is counted then.
    /// [`TakeError::Counts`] if the counters cannot be stored: no call is allowed without them.
    pub fn take(&self, counted: &[RatedTool<'_>], caller: &str) -> Result<(), TakeError> {
        self.take_at(counted, caller, now())
    }

    /// Like [`take`](Self::take), at a time in nanoseconds since 1970.
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

/// Returns the key of a tool and a caller. It has a fixed length and reveals neither name.
fn key(tool: &str, caller: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in [tool, caller] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Returns the time in nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
