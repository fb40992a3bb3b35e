//! A lock so that only one of several processes that miss the same entry compiles it while the
//! others wait.
//!
//! The lock is on an empty file next to the entry. The kernel releases it when the process ends for
//! any reason, and the next process continues. If the lock is not available (the directory is not
//! writable, the file system has no locks, or the wait was as long as a compilation may take), each
//! process compiles on its own: the lock only saves work.

use std::fs::{File, TryLockError};
use std::io;

use kitbag_fs_guard::{FileKind, Stat};

use super::key::{Key, is_digest};
use super::private::private;
use crate::sys::{lock_file_at, remove_at};
use crate::wait::Wait;

/// The prefix of lock file names.
const PREFIX: &str = ".lock-";

/// The right to compile an entry, held by one process until this is dropped.
pub struct CompileLock {
    directory: File,
    name: String,
    file: File,
}

/// Returns true if a file of the cache directory is a lock file.
pub(super) fn is_lock(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(is_digest)
}

impl CompileLock {
    /// Waits for the lock of a key in the cache directory.
    ///
    /// `None` if another process has compiled the entry meanwhile, or the lock is not available.
    pub(super) fn acquire(directory: File, key: Key, wait: &Wait<'_>) -> Option<Self> {
        let name = format!("{PREFIX}{key}");
        let file = lock_file_at(&directory, &name).ok()?;
        private(&file, FileKind::File).ok()?;
        let is_ours = wait.poll(wait.limit(), || {
            let locked = file.try_lock();
            // A process that finished has removed the file; a process that was killed has not.
            let is_over = Stat::of(&file).map_or(true, |stat| stat.link_count() == 0);
            match locked {
                _ if is_over => Some(false),
                Ok(()) => Some(true),
                Err(TryLockError::WouldBlock) => None,
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {
                    None
                }
                Err(TryLockError::Error(_)) => Some(false),
            }
        });
        is_ours?.then_some(Self { directory, name, file })
    }
}

impl Drop for CompileLock {
    /// Removes the file, so that waiting processes look for the entry.
    fn drop(&mut self) {
        // Unless the cache was emptied: the name may belong to another process now.
        if Stat::of(&self.file).is_ok_and(|stat| stat.link_count() > 0) {
            // The next process locks a file that could not be removed.
            let _ = remove_at(&self.directory, &self.name);
        }
    }
}
