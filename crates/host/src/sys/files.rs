//! Files that are opened and made by a handle of their directory.

use std::fs::File;
use std::io;

use rustix::fs::{OFlags, openat};
use rustix::io::Errno;

use super::mode;

/// What is opened with these rights, and what becomes of a name that nothing has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) create: bool,
    pub(crate) is_new: bool,
    pub(crate) is_directory: bool,
}

/// Opens what has a name in a directory, or makes a file there. A link is not followed, and
/// nothing waits: what is there may be a FIFO.
///
/// # Errors
///
/// Those of the system.
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

/// What the system says where there is no room on a disk.
pub(crate) fn disk_full() -> io::Error {
    Errno::NOSPC.into()
}
