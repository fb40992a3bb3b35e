//! The names of temporary files of a change, and cleaning up after killed calls.
//!
//! All begin with `.kitbag-`, then what the file is for, the digest of the name of the file
//! that is changed, the time and a random number. A lock has neither time nor number.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::time::{SystemTime, UNIX_EPOCH};

use kitbag_workspace::list;

use crate::file::digest;

/// How all of them begin. Listings pass over them.
const START: &str = ".kitbag-";

/// The age in seconds after which any temporary file was left behind: no call runs that long.
const OLD_SECONDS: u64 = 600;

/// The purpose of a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The new content of a file that exists. The host keeps others from reading it, and
    /// gives it the mode of the file whose place it takes.
    Replace,
    /// The content of a file that does not exist yet.
    Create,
    /// The file that is being removed.
    Remove,
}

/// Returns true if a name is that of a temporary file.
pub(crate) fn is_leftover(name: &str) -> bool {
    name.starts_with(START)
}

/// A name for a further file, for a change of the file of this name.
pub(crate) fn temporary_name(purpose: Purpose, target: &str) -> String {
    let purpose = match purpose {
        Purpose::Replace => "tmp",
        Purpose::Create => "new",
        Purpose::Remove => "old",
    };
    let random = RandomState::new().build_hasher().finish();
    format!("{START}{purpose}-{}-{:x}-{random:x}", short(target), now())
}

/// The name of the lock for the file of this name.
pub(crate) fn lock_name(target: &str) -> String {
    format!("{START}lock-{}", short(target))
}

/// Returns the files in a directory that killed calls left behind, which changed a file with this
/// name, or any file long ago. A running call that changes the same file may still need its files:
/// they are removed once that file has changed.
pub(crate) fn leftovers(directory: &str, target: &str) -> Vec<String> {
    let (target, now) = (short(target), now());
    let mut found = Vec::new();
    // A directory that cannot be listed keeps what is in it.
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

/// The digest and the time in a name.
fn parse(name: &str) -> Option<(&str, u64)> {
    let rest = name.strip_prefix(START)?;
    let (purpose, rest) = rest.split_once('-')?;
    let (of, rest) = rest.split_once('-')?;
    let (time, _) = rest.split_once('-')?;
    let is_ours = matches!(purpose, "tmp" | "new" | "old");
    is_ours.then_some((of, u64::from_str_radix(time, 16).ok()?))
}

/// A name in a few characters: the whole would be too long for some.
fn short(name: &str) -> String {
    digest(name.as_bytes())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
