//! Of several processes that miss the same entry one compiles it, and the others
//! wait.
//!
//! The lock is one on an empty file beside the entry. The kernel releases it when
//! the process ends, for whatever reason, and the next process continues. Where it
//! cannot be had, since the directory cannot be written or the file system has no
//! locks, or after waiting for as long as a compilation may take, each process compiles for itself: the lock
//! saves work, and nothing else depends on it.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use rustix::io::Errno;

use super::key::{Key, is_digest};
use super::private::private;
use crate::wait::Wait;

/// What the name of a lock file starts with.
const PREFIX: &str = ".lock-";

/// The right to compile an entry, which one process has until this is dropped.
pub(crate) struct CompileLock {
    directory: OwnedFd,
    name: String,
    file: OwnedFd,
}

/// Whether a file of the cache's directory is a lock file.
pub(super) fn is_lock(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(is_digest)
}

impl CompileLock {
    /// Waits until no other process has the lock of a key in the cache's directory.
    ///
    /// `None` where another process has compiled the entry meanwhile, or no lock can be
    /// had.
    pub(super) fn acquire(directory: OwnedFd, key: Key, wait: &Wait<'_>) -> Option<Self> {
        let name = format!("{PREFIX}{key}");
        // Writable, since some file systems lock nothing else; not blocking, since
        // there may be a FIFO in its place.
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&directory, &name, flags, Mode::RUSR | Mode::WUSR).ok()?;
        private(&file, FileType::RegularFile).ok()?;
        let is_ours = wait.poll(wait.limit(), || {
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
            // A process that finished has removed the file; one that was killed has
            // not.
            let is_over = fstat(&file).map_or(true, |stat| stat.st_nlink == 0);
            match locked {
                _ if is_over => Some(false),
                Ok(()) => Some(true),
                Err(Errno::WOULDBLOCK | Errno::INTR) => None,
                Err(_) => Some(false),
            }
        });
        is_ours?.then_some(Self { directory, name, file })
    }
}

impl Drop for CompileLock {
    /// Removes the file, so that the processes that wait look for the entry.
    fn drop(&mut self) {
        // Unless the cache was emptied: the name may belong to another process now.
        if fstat(&self.file).is_ok_and(|stat| stat.st_nlink > 0) {
            // The next process locks a file that could not be removed.
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}
