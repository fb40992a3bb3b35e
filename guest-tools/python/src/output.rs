//! The output of a script: kept for the answer, and sent as log messages while the script runs.

use std::fmt::Write as _;

use kitbag_sdk::host::{self, Level};

/// The most bytes of a script's output in the answer, and of its value.
pub(crate) const SHOWN_BYTES: usize = 32 << 10;

/// The longest log message, and the most messages and bytes: slightly more than the host accepts,
/// so that the host reports the excess.
const MESSAGE_BYTES: usize = 4 << 10;
const MESSAGES: usize = 1001;
const ALL_MESSAGE_BYTES: usize = 68 << 10;

/// The first [`SHOWN_BYTES`] of the output, and the number of bytes after them.
#[derive(Debug, Default)]
pub(crate) struct Output {
    text: String,
    omitted: u64,
    log: Log,
}

/// Log messages: one for each `print`.
#[derive(Debug, Default)]
struct Log {
    message: String,
    messages: usize,
    bytes: usize,
}

impl Log {
    fn push(&mut self, text: &str) {
        if self.messages >= MESSAGES || self.bytes >= ALL_MESSAGE_BYTES {
            return;
        }
        let room = MESSAGE_BYTES.saturating_sub(self.message.len());
        let taken = &text[..text.floor_char_boundary(room)];
        self.message.push_str(taken);
        self.bytes += taken.len();
    }

    fn send(&mut self) {
        let has_room = self.messages < MESSAGES && self.bytes <= ALL_MESSAGE_BYTES;
        if has_room && !self.message.is_empty() {
            host::log(Level::Info, &self.message);
            self.messages += 1;
        }
        self.message.clear();
    }
}

impl Output {
    /// Adds what the script writes. A newline at the end of a write ends a log message, as `print`
    /// writes one last.
    pub(crate) fn write(&mut self, text: &str) {
        self.push(text);
        match text.strip_suffix('\n') {
            Some(line) => {
                self.log.push(line);
                self.log.send();
            }
            None => self.log.push(text),
        }
    }

    /// Adds text that is not logged.
    pub(crate) fn push(&mut self, text: &str) {
        let room = match self.omitted {
            0 => SHOWN_BYTES - self.text.len(),
            // Nothing is added after an omission.
            _ => 0,
        };
        let taken = &text[..text.floor_char_boundary(room)];
        self.text.push_str(taken);
        self.omitted += (text.len() - taken.len()) as u64;
    }

    /// Adds lines that are not logged and that begin on a line of their own.
    pub(crate) fn push_lines(&mut self, lines: &str) {
        if !lines.is_empty() && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
        self.push(lines);
    }

    /// Returns the output, with a newline at its end.
    pub(crate) fn into_lines(mut self) -> String {
        self.log.send();
        let mut text = self.text;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.omitted > 0 {
            let _ = writeln!(text, "[{} more bytes were printed: print less]", self.omitted);
        }
        text
    }
}
