//! Limits the size of the cache: removes entries that were unused for long, and then the least
//! recently used ones until the rest is small enough.
//!
//! The modification time of a file is the time of its last use, updated at most once a day.

use std::fs::File;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kitbag_fs_guard::sys::Entries;
use kitbag_fs_guard::{FileKind, Stat};

use super::description::is_description;
use super::key::is_entry;
use super::private::is_partial;
use crate::sys::remove_at;

/// One day: a use is recorded at most once in this time, and no write takes longer.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The maximum size of all entries.
pub(super) const MAX_BYTES: u64 = 2 << 30;

/// The age at which an unused entry is removed.
pub(super) const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A file that may be removed.
struct Candidate {
    used: Duration,
    size: u64,
    name: String,
}

/// Records the use of an entry, unless a use was recorded today.
pub(super) fn touch(file: &File, stat: &Stat) {
    if age(stat) > DAY {
        // On failure, the entry only seems older than it is.
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Removes entries beyond the limits, except for the entry with this name.
///
/// Errors are left for the next time. Several processes may do this at once: they remove the same
/// entries, and none that was used since it was checked.
pub(super) fn prune(directory: &File, kept: &str) {
    let Ok(listing) = Entries::read(directory) else { return };
    let mut entries = Vec::new();
    let mut total = 0;
    for entry in listing.flatten() {
        let Some(name) = entry.name().to_str() else { continue };
        if !is_entry(name) && !is_description(name) {
            continue;
        }
        let Ok(stat) = Stat::at(directory, name) else { continue };
        if stat.kind() != FileKind::File {
            continue;
        }
        // Left by a process that was killed while it wrote.
        let max_age = if is_partial(name) { DAY } else { MAX_AGE };
        let size = stat.size();
        let candidate = Candidate { used: used(&stat), size, name: name.to_owned() };
        if age(&stat) > max_age && name != kept {
            remove(directory, &candidate);
        } else if !is_partial(name) {
            total += size;
            entries.push(candidate);
        }
    }
    entries.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
    for candidate in entries.iter().filter(|candidate| candidate.name != kept) {
        if total <= MAX_BYTES {
            return;
        }
        remove(directory, candidate);
        total -= candidate.size;
    }
}

/// Removes a file, unless it was used since it was checked.
fn remove(directory: &File, candidate: &Candidate) {
    let name = &*candidate.name;
    if Stat::at(directory, name).is_ok_and(|stat| used(&stat) == candidate.used) {
        let _ = remove_at(directory, name);
    }
}

/// Returns the time of the last use, since the epoch.
fn used(stat: &Stat) -> Duration {
    let (seconds, nanoseconds) = stat.modified_at();
    let seconds = u64::try_from(seconds).unwrap_or(0);
    Duration::new(seconds, u32::try_from(nanoseconds).unwrap_or(0))
}

/// Returns the time since the last use. The clock may have been set back.
fn age(stat: &Stat) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(used(stat))
}
