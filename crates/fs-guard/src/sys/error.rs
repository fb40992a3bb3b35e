//! What an error of the system means, where the standard library has no name for it.

use std::io;

use rustix::io::Errno;

/// Whether nothing was opened since a link is in its place, or since there are too many links on
/// the way.
pub fn is_link_error(error: &io::Error) -> bool {
    is(error, Errno::LOOP)
}

/// An error that says so.
pub fn too_many_links() -> io::Error {
    Errno::LOOP.into()
}

/// Whether nothing was opened since it is a socket, or a FIFO that is written and that nothing
/// reads.
pub fn has_no_other_end(error: &io::Error) -> bool {
    is(error, Errno::NXIO)
}

/// Whether this process has as many files open as it may.
pub fn is_too_many_files(error: &io::Error) -> bool {
    is(error, Errno::MFILE)
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}
