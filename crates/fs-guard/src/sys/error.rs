//! Meanings of system errors for which the standard library has no name.

use std::io;

use rustix::io::Errno;

/// Returns true if an open failed because of a link or too many links.
pub fn is_link_error(error: &io::Error) -> bool {
    is(error, Errno::LOOP)
}

/// Creates the error for too many links.
pub fn too_many_links() -> io::Error {
    Errno::LOOP.into()
}

/// Returns true if an open failed because the file is a socket, or a FIFO without a reader that was
/// opened for writing.
pub fn has_no_other_end(error: &io::Error) -> bool {
    is(error, Errno::NXIO)
}

/// Returns true if this process has too many open files.
pub fn is_too_many_files(error: &io::Error) -> bool {
    is(error, Errno::MFILE)
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}
