//! Opening and creating files relative to a directory handle.

use std::fs::File;
use std::io;

use rustix::fs::{OFlags, openat};
use rustix::io::Errno;

use super::mode;

/// How to open a file, and whether to create a missing one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) create: bool,
    pub(crate) is_new: bool,
    pub(crate) is_directory: bool,
}

/// Opens a directory entry, or creates a file. Does not follow links and does not block: the entry
/// may be a FIFO.
///
/// # Errors
///
/// Errors of the system.
pub(crate) fn open_or_create_at(directory: &File, name: &str, access: Access) -> io::Result<File> {
    let mut flags = match (access.read, access.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    flags |= OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::CREATE, access.create);
    flags.set(OFlags::EXCL, access.is_new);
    flags.set(OFlags::DIRECTORY, access.is_directory);
    Ok(openat(directory, name, flags, mode::of_new_file(name))?.into())
}

/// Returns the system's error for a full disk.
pub(crate) fn disk_full() -> io::Error {
    Errno::NOSPC.into()
}
