//! Files of the cache, by a handle of their directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

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
