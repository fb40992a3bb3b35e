//! Files that are made, changed and removed by a handle of their directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::mode;

/// What is opened with these rights, and what becomes of a name that nothing has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    /// It is read.
    pub(crate) read: bool,
    /// It is written.
    pub(crate) write: bool,
    /// A file is made where there is nothing.
    pub(crate) create: bool,
    /// There has to be nothing.
    pub(crate) is_new: bool,
    /// There has to be a directory.
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

/// Makes a file that is the user's alone, and that only root could open for writing again.
///
/// # Errors
///
/// Those of the system; [`io::ErrorKind::AlreadyExists`] where something has its name.
pub(crate) fn create_at(directory: &File, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::RUSR)?.into())
}

/// Opens a file that processes lock, which is made where it is missing and is the user's alone.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn lock_file_at(directory: &File, name: &str) -> io::Result<File> {
    // Writable, since some file systems lock nothing else; not blocking, since there may be a
    // FIFO in its place.
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Gives a file another name in the same directory.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn rename_at(directory: &File, from: &str, to: &str) -> io::Result<()> {
    Ok(renameat(directory, from, directory, to)?)
}

/// Removes a file of a directory.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn remove_at(directory: &File, name: &str) -> io::Result<()> {
    Ok(unlinkat(directory, name, AtFlags::empty())?)
}

/// A path under which an open file can be opened again, where such paths are mounted.
pub(crate) fn path_of(file: &File) -> PathBuf {
    let directory = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    PathBuf::from(format!("{directory}/{}", file.as_raw_fd()))
}

/// What the system says where there is no room on a disk.
pub(crate) fn disk_full() -> io::Error {
    Errno::NOSPC.into()
}
