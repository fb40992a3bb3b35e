//! Standard input and output, for the protocol alone.

use std::io;
use std::os::fd::OwnedFd;

/// One end of a pipe, a socket, a terminal or a file.
pub(crate) type Handle = OwnedFd;

/// Takes standard input and output over for the protocol.
///
/// Whatever else this process prints to standard output goes to standard error
/// from here on, so that nothing but messages reaches the client.
///
/// # Errors
///
/// Where one of them is closed.
pub fn take_over_stdio() -> io::Result<(Handle, Handle)> {
    /// Above those that have a meaning of their own.
    const ABOVE: i32 = 3;
    let input = rustix::io::fcntl_dupfd_cloexec(io::stdin(), ABOVE)?;
    let output = rustix::io::fcntl_dupfd_cloexec(io::stdout(), ABOVE)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((input, output))
}
