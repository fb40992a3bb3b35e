//! How often tools were called: counts that are kept in memory, or in a file that every
//! process of the user shares.
//!
//! What a rate allows is decided by `kitbag-policy`. This crate keeps what was spent, so
//! that no count is lost: a file is locked, read, written beside its place and renamed.
//! Nothing is read or written before the first call that has a rate.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use kitbag_contract::text::shown;
use kitbag_policy::{Rates, Spent, UsedUp};
use kitbag_state::WorkspaceState;
use serde::{Deserialize, Serialize};

use crate::file::CountsFile;

/// The most tools and callers of which something is kept. Beyond them, those that are over
/// first are forgotten.
const MOST_ENTRIES: usize = 10_000;

/// What was spent of the rates of one workspace's tools.
#[derive(Debug)]
pub struct Counts {
    place: Place,
}

/// Where counts are kept.
#[derive(Debug)]
enum Place {
    Memory(Mutex<Entries>),
    File(CountsFile),
}

/// What was spent, by tool and caller.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Entries(BTreeMap<String, Spent>);

/// Rates of a call, and the tool whose calls they count.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// The rates.
    pub rates: &'a Rates,
    /// The tool. Calls by another name for it count, too.
    pub tool: &'a str,
}

/// A call that is not counted.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// A rate does not allow it now.
    #[error("the rate `{}` is used up", used_up.rate)]
    UsedUp {
        /// Of the rates that were to be counted, the position of those that allow a call last.
        at: usize,
        /// The rate, and when all of them allow a call again.
        used_up: UsedUp,
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

impl Counts {
    /// Counts that end with this value.
    pub fn in_memory() -> Self {
        Self { place: Place::Memory(Mutex::default()) }
    }

    /// The counts of a workspace in the state directory, which every process of the user
    /// shares. Both paths are absolute. Nothing is looked at before a call is counted.
    pub fn in_directory(state: &Path, workspace: &Path) -> Self {
        Self { place: Place::File(CountsFile::new(WorkspaceState::new(state, workspace))) }
    }

    /// Whether they end with this value.
    pub fn are_in_memory(&self) -> bool {
        matches!(self.place, Place::Memory(_))
    }

    /// Counts a call, where all of its rates allow it. They hold for each caller by itself.
    /// No tool stands twice in `counted`.
    ///
    /// # Errors
    ///
    /// [`TakeError::UsedUp`] where a rate does not allow it now; then nothing is counted.
    /// [`TakeError::Counts`] where the counts cannot be kept: without them no call is allowed.
    pub fn take(&self, counted: &[Counted<'_>], caller: &str) -> Result<(), TakeError> {
        self.take_at(counted, caller, now())
    }

    /// As [`take`](Self::take), at a time in nanoseconds since 1970.
    fn take_at(&self, counted: &[Counted<'_>], caller: &str, now: u64) -> Result<(), TakeError> {
        let counted: Vec<_> = counted.iter().map(|it| (it.rates, key(it.tool, caller))).collect();
        match &self.place {
            Place::Memory(entries) => {
                let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                entries.take(&counted, now, MOST_ENTRIES)
            }
            Place::File(file) => file.change(|entries| entries.take(&counted, now, MOST_ENTRIES)),
        }
    }
}

impl Entries {
    /// Counts a call by all of these keys, or by none, and keeps at most so many entries.
    fn take(
        &mut self,
        counted: &[(&Rates, String)],
        now: u64,
        most: usize,
    ) -> Result<(), TakeError> {
        let mut taken = Vec::new();
        let mut refused: Option<(usize, UsedUp)> = None;
        for (at, (rates, key)) in counted.iter().enumerate() {
            let mut spent = self.0.get(key).cloned().unwrap_or_default();
            match rates.take(&mut spent, now) {
                Ok(()) => taken.push((key, spent)),
                Err(used_up) => {
                    let is_later =
                        refused.is_none_or(|(_, other)| other.retry_after < used_up.retry_after);
                    refused = if is_later { Some((at, used_up)) } else { refused };
                }
            }
        }
        if let Some((at, used_up)) = refused {
            return Err(TakeError::UsedUp { at, used_up });
        }
        self.0.retain(|_, spent| !spent.is_over(now));
        for (key, spent) in taken {
            while self.0.len() >= most && !self.0.contains_key(key) {
                let first = self.0.iter().min_by_key(|(_, spent)| spent.over_at());
                let Some(first) = first.map(|(key, _)| key.clone()) else { break };
                self.0.remove(&first);
            }
            self.0.insert(key.clone(), spent);
        }
        Ok(())
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
