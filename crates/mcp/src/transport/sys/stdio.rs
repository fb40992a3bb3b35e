//! Standard input and output, reserved for the protocol.

use std::io;
use std::os::fd::OwnedFd;

/// One end of a pipe, a socket, a terminal or a file.
pub(crate) type Handle = OwnedFd;

/// Takes over standard input and output for the protocol.
///
/// Other output of this process to standard output is redirected to standard error, so that the
/// client receives only messages.
///
/// # Errors
///
/// If one of them is closed.
pub fn take_over_stdio() -> io::Result<(Handle, Handle)> {
    /// Above the standard descriptors.
    const ABOVE: i32 = 3;
    let input = rustix::io::fcntl_dupfd_cloexec(io::stdin(), ABOVE)?;
    let output = rustix::io::fcntl_dupfd_cloexec(io::stdout(), ABOVE)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((input, output))
}
