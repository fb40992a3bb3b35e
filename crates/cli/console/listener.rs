//! Shows the events of a running tool and of the host on the terminal.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kitbag::base::text::{printable, shown};
use kitbag::{Compiling, EventSink, Listener, LogLevel, Progress};
use unicode_width::UnicodeWidthChar as _;

use crate::console::interrupt::Interrupt;
use crate::console::output;

/// Minimum time that a progress line is visible. A tool may report a thousand steps in a moment.
const STANDS: Duration = Duration::from_millis(50);

/// Maximum length of a progress line in terminal columns, including the truncation mark: the line
/// is rewritten in place, so it must not wrap.
const LINE_COLUMNS: usize = 73;

/// Shows log messages and progress on standard error.
pub(crate) struct Screen {
    logs: bool,
    progress: bool,
    line: Mutex<Line>,
    /// Ctrl-C, once the tool runs.
    interrupt: Option<Interrupt>,
}

/// The progress line, which is the last line on the terminal.
#[derive(Default)]
struct Line {
    is_there: bool,
    written: Option<Instant>,
}

impl Screen {
    /// Shows log messages with `--verbose`, and progress if a person is at the terminal and no
    /// program reads the output.
    pub(crate) fn new(verbose: bool, as_json: bool) -> Self {
        let progress = io::stderr().is_terminal() && !as_json;
        Self { logs: verbose, progress, line: Mutex::default(), interrupt: None }
    }

    /// Like [`Self::new`], for a call that `interrupt` cancels.
    pub(crate) fn of_call(verbose: bool, as_json: bool, interrupt: &Interrupt) -> Self {
        Self { interrupt: Some(interrupt.clone()), ..Self::new(verbose, as_json) }
    }

    /// Shows the progress of work that may have to compile tools.
    pub(crate) fn during<T>(as_json: bool, work: impl FnOnce(EventSink) -> T) -> T {
        let screen = Arc::new(Self::new(false, as_json));
        let result = work(EventSink::new(Arc::<Self>::clone(&screen)));
        screen.clear();
        result
    }

    /// Clears the progress line.
    pub(crate) fn clear(&self) {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Listener for Screen {
    fn log(&self, level: LogLevel, message: &str) {
        if !self.logs {
            return;
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.clear();
        // Each line has a label, so that a message cannot forge a line.
        for text in message.split('\n') {
            output::note(&format!("log: {level}: {}", printable(text)));
        }
    }

    fn progress(&self, progress: &Progress) {
        if !self.progress {
            return;
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.written.is_none_or(|written| written.elapsed() >= STANDS) {
            line.rewrite(&text(progress));
        }
    }

    fn compiling(&self, compiling: &Compiling<'_>) {
        if self.progress {
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            line.rewrite(&short(compiling.to_string()));
        }
    }

    fn started(&self) {
        self.clear();
        if let Some(interrupt) = &self.interrupt {
            interrupt.set_leave(false);
        }
    }
}

impl Line {
    fn rewrite(&mut self, text: &str) {
        output::rewrite(text);
        *self = Self { is_there: true, written: Some(Instant::now()) };
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_there) {
            output::rewrite("");
        }
    }
}

fn text(progress: &Progress) -> String {
    let Progress { done, total, message } = progress;
    let amount = match total {
        Some(total) if *total > 0.0 => format!("{:.0} %", (done / total * 100.0).min(100.0)),
        _ => format!("{done}"),
    };
    short(match message {
        Some(message) => format!("{amount}  {}", shown(message)),
        None => amount,
    })
}

/// Truncates text to a progress line.
///
/// Counts each character separately, like a terminal that joins none, and as wide if its width
/// depends on the terminal: the line is never longer than the limit.
fn short(mut line: String) -> String {
    let mut columns = 0;
    let mut end = 0;
    for (start, c) in line.char_indices() {
        columns += c.width_cjk().unwrap_or(0);
        if columns > LINE_COLUMNS {
            line.truncate(end);
            line.push('…');
            break;
        }
        // The mark may take two columns.
        if columns + 2 <= LINE_COLUMNS {
            end = start + c.len_utf8();
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_one_short_line() {
        let check = |done: f64, total: Option<f64>, message: Option<&str>, expected: &str| {
            let message = message.map(ToOwned::to_owned);
            assert_eq!(text(&Progress { done, total, message }), expected);
        };
        check(1.0, Some(3.0), Some("reading"), "33 %  reading");
        check(4.0, Some(3.0), None, "100 %");
        check(4.0, Some(0.0), None, "4");
        check(2.5, None, Some("a\nb\u{1b}[2J"), "2.5  a\\nb\\u{1b}[2J");
        check(1e300, None, None, &format!("1{}…", "0".repeat(70)));
        check(1.0, None, Some(&"a".repeat(70)), &format!("1  {}", "a".repeat(70)));
        check(1.0, None, Some(&"a".repeat(71)), &format!("1  {}…", "a".repeat(68)));
        // Two columns each, and marks without width.
        check(1.0, None, Some(&"漢".repeat(35)), &format!("1  {}", "漢".repeat(35)));
        check(1.0, None, Some(&"漢".repeat(36)), &format!("1  {}…", "漢".repeat(34)));
        check(1.0, None, Some(&"e\u{301}".repeat(68)), &format!("1  {}", "e\u{301}".repeat(68)));
    }
}
