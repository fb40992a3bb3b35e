//! The terminal of the user: its size, and what was typed before a question was shown.

use std::io;

use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};

/// Drops what was typed and not read yet. Where standard input is no terminal, nothing is dropped.
pub(crate) fn discard_typed() {
    // A stream that is no terminal has nothing that was typed.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// The lines and columns of the terminal on standard error. `None`: they are not known.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(io::stderr()).ok()?;
    let (lines, columns) = (usize::from(size.ws_row), usize::from(size.ws_col));
    (lines > 0 && columns > 0).then_some((lines, columns))
}
