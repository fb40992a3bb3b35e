//! Whose turn it is to compile: of several processes that miss the same entry
//! one makes it, and the others wait for that.
//!
//! A claim is a lock on an empty file beside the entry. The kernel takes the lock
//! away when a process ends, however that comes about, and the next one goes on.
//! Where a claim cannot be had, for want of a directory that can be written or a
//! file system with locks, everybody compiles for himself, as does who has waited
//! too long: a claim saves work and nothing depends on it.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use rustix::io::Errno;

use super::{DiskCache, Key, private};
use crate::wait::{TIME, Wait};

/// What the name of a claim's file starts with.
const CLAIM: &str = ".claim-";

/// The right to make an entry, which one process has until this is dropped.
pub(crate) struct Claim {
    directory: OwnedFd,
    name: String,
    file: OwnedFd,
}

/// Whether a file of the cache's directory is a claim's.
pub(super) fn is_claim(name: &str) -> bool {
    name.starts_with(CLAIM)
}

impl DiskCache {
    /// Waits until nobody else makes the entry of a key.
    ///
    /// Then, with a claim or without, the entry may be there. Without one it was
    /// somebody else's turn, or nothing is known of turns.
    pub(crate) fn claim(&self, key: Key, wait: &Wait<'_>) -> Option<Claim> {
        let directory = self.open(true).ok()??;
        let name = format!("{CLAIM}{key}");
        // Writable, since some file systems lock nothing else; not blocking, for
        // the case that somebody has put a FIFO there.
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&directory, &name, flags, Mode::RUSR | Mode::WUSR).ok()?;
        private(&file, FileType::RegularFile).ok()?;
        let is_ours = wait.poll(TIME, || {
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
            // Whoever had the claim and came to an end has removed it; whoever was
            // killed has not.
            let is_over = fstat(&file).map_or(true, |stat| stat.st_nlink == 0);
            match locked {
                _ if is_over => Some(false),
                Ok(()) => Some(true),
                Err(Errno::WOULDBLOCK | Errno::INTR) => None,
                Err(_) => Some(false),
            }
        });
        is_ours?.then_some(Claim { directory, name, file })
    }
}

impl Drop for Claim {
    /// Lets those who wait look for the entry.
    fn drop(&mut self) {
        // Unless somebody has emptied the cache: the name may be another's now.
        if fstat(&self.file).is_ok_and(|stat| stat.st_nlink > 0) {
            // What cannot be removed is locked again by the next one.
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}
