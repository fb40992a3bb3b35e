//! Platform-specific code: standard input and output that are used
//! without waiting in the kernel, and how many connections wait to be taken.

mod pipe;
mod stdio;

use std::io;
use std::net::TcpListener;

pub(crate) use pipe::Pipe;
pub(crate) use stdio::Handle;
pub use stdio::take_over_stdio;

/// Lets so many connections wait until they are taken, or as many as can be.
pub(crate) fn extend_backlog(listener: &TcpListener, connections: i32) -> io::Result<()> {
    Ok(rustix::net::listen(listener, connections)?)
}
