//! Platform-specific code: non-blocking standard input and output, and the backlog of a listener.

mod pipe;
mod stdio;

use std::io;
use std::net::TcpListener;

pub(crate) use pipe::Pipe;
pub(crate) use stdio::Handle;
pub use stdio::take_over_stdio;

/// Extends the backlog to this many connections, or as many as possible.
pub(crate) fn extend_backlog(listener: &TcpListener, connections: i32) -> io::Result<()> {
    Ok(rustix::net::listen(listener, connections)?)
}
