//! Files of the cache, relative to a handle of their directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

/// Creates a private file that only root could reopen for writing.
///
/// # Errors
///
/// Errors of the system; [`io::ErrorKind::AlreadyExists`] if the name exists.
pub(crate) fn create_at(directory: &File, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::RUSR)?.into())
}

/// Opens a private lock file, which is created if it does not exist.
///
/// # Errors
///
/// Errors of the system.
pub(crate) fn lock_file_at(directory: &File, name: &str) -> io::Result<File> {
    // Writable, since some file systems do not lock other files; non-blocking, since a FIFO may be
    // in its place.
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Renames a file within the directory.
///
/// # Errors
///
/// Errors of the system.
pub(crate) fn rename_at(directory: &File, from: &str, to: &str) -> io::Result<()> {
    Ok(renameat(directory, from, directory, to)?)
}

/// Removes a file of a directory.
///
/// # Errors
///
/// Errors of the system.
pub(crate) fn remove_at(directory: &File, name: &str) -> io::Result<()> {
    Ok(unlinkat(directory, name, AtFlags::empty())?)
}

/// Returns a path that reopens an open file, if such paths are mounted.
pub(crate) fn path_of(file: &File) -> PathBuf {
    let directory = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    PathBuf::from(format!("{directory}/{}", file.as_raw_fd()))
}
