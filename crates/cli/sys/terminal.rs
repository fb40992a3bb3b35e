//! The terminal: its size, and input typed before a question was shown.

use std::io;

use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};

/// Discards input that was typed and not read yet. Does nothing if standard input is not a
/// terminal.
pub(crate) fn discard_typed() {
    // A stream that is not a terminal has no typed input.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// Returns the lines and columns of the terminal on standard error. `None` if unknown.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(io::stderr()).ok()?;
    let (lines, columns) = (usize::from(size.ws_row), usize::from(size.ws_col));
    (lines > 0 && columns > 0).then_some((lines, columns))
}
