//! Detects a limit on open files that is too low.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use kitbag_fs_guard::sys::is_too_many_files;
use rustix::process::{Resource, getrlimit};

/// Number of files that kitbag opens for one step of a call: to start a compiler.
const NEEDED: usize = 8;

/// Returns the limit on open files if fewer are left than one step of a call needs: the failure was
/// likely caused by the limit.
///
/// Checked only after a failure, so that a start needs no system call for it.
pub(crate) fn shortage() -> Option<u64> {
    let opened: io::Result<Vec<OwnedFd>> =
        (0..NEEDED).map(|_| io::stderr().as_fd().try_clone_to_owned()).collect();
    let error = opened.err()?;
    is_too_many_files(&error).then(|| getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}
