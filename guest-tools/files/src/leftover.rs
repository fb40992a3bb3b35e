//! The names of temporary files, and the cleanup after killed calls.
//!
//! All names start with `.kitbag-`, followed by the purpose, the digest of the changed file's name,
//! the time and a random number. A lock has neither time nor number.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::time::{SystemTime, UNIX_EPOCH};

use kitbag_workspace::list;

use crate::file::digest;

/// The common prefix. Listings skip these files.
const START: &str = ".kitbag-";

/// The age in seconds after which a temporary file is a leftover: no call runs that long.
const OLD_SECONDS: u64 = 600;

/// The purpose of a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The new content of an existing file. The host hides it from other users, and gives it the
    /// mode of the file that it replaces.
    Replace,
    /// The content of a new file.
    Create,
    /// The file that is removed.
    Remove,
}

/// Returns true if a name belongs to a temporary file.
pub(crate) fn is_leftover(name: &str) -> bool {
    name.starts_with(START)
}

/// Returns a temporary name for a change of the file with this name.
pub(crate) fn temporary_name(purpose: Purpose, target: &str) -> String {
    let purpose = match purpose {
        Purpose::Replace => "tmp",
        Purpose::Create => "new",
        Purpose::Remove => "old",
    };
    let random = RandomState::new().build_hasher().finish();
    format!("{START}{purpose}-{}-{:x}-{random:x}", short(target), now())
}

/// Returns the name of the lock for the file with this name.
pub(crate) fn lock_name(target: &str) -> String {
    format!("{START}lock-{}", short(target))
}

/// Returns leftovers of killed calls in a directory: those for the file with this name, and old
/// ones for any file. A running call that changes the same file may still need its files: those are
/// removed once the file has changed.
pub(crate) fn leftovers(directory: &str, target: &str) -> Vec<String> {
    let (target, now) = (short(target), now());
    let mut found = Vec::new();
    // A directory that cannot be listed keeps its files.
    let _ = list(directory, |name, _| {
        if let Some((of, time)) = parse(name)
            && (of == target || now.saturating_sub(time) > OLD_SECONDS)
        {
            found.push(format!("{}/{name}", directory.trim_end_matches('/')));
        }
        ControlFlow::Continue(())
    });
    found
}

/// Returns the digest and the time in a name.
fn parse(name: &str) -> Option<(&str, u64)> {
    let rest = name.strip_prefix(START)?;
    let (purpose, rest) = rest.split_once('-')?;
    let (of, rest) = rest.split_once('-')?;
    let (time, _) = rest.split_once('-')?;
    let is_ours = matches!(purpose, "tmp" | "new" | "old");
    is_ours.then_some((of, u64::from_str_radix(time, 16).ok()?))
}

/// Returns a short digest of a name, since a whole name could make the new name too long.
fn short(name: &str) -> String {
    digest(name.as_bytes())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
