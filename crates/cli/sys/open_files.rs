//! Detects that this process may open too few files.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use kitbag_fs_guard::sys::is_too_many_files;
use rustix::process::{Resource, getrlimit};

/// As many as kitbag opens at once for one step of a call: to start a compiler.
const NEEDED: usize = 8;

/// The limit on open files, where fewer are left than one step of a call needs:
/// whatever failed has failed for want of them, most likely.
///
/// Looked at only where something failed, so that a start spends no system call on it.
pub(crate) fn shortage() -> Option<u64> {
    let opened: io::Result<Vec<OwnedFd>> =
        (0..NEEDED).map(|_| io::stderr().as_fd().try_clone_to_owned()).collect();
    let error = opened.err()?;
    is_too_many_files(&error).then(|| getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}
