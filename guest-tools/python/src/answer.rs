//! The answer of a call: the script's output, its value or traceback, and the cost of nested calls.
//! Output is also sent as log messages while the script runs.

use std::borrow::Cow;
use std::fmt::Write as _;

use kitbag_sdk::host::{self, Level};
use kitbag_workspace::cut;
use monty_types::{ExcType, MontyException, MontyObject, PrintWriterCallback};

use crate::VALUE_BYTES;
use crate::awaited::Awaited;
use crate::tools::{Spent, Tools};
use crate::value::to_text;

/// The modules that there are.
pub(crate) const MODULES: [&str; 16] = [
    "asyncio",
    "base64",
    "binascii",
    "collections",
    "dataclasses",
    "datetime",
    "functools",
    "itertools",
    "json",
    "math",
    "os",
    "pathlib",
    "re",
    "sys",
    "typing",
    "unicodedata",
];

/// The most bytes of a script's output in the answer, and of its value.
pub(crate) const SHOWN_BYTES: usize = 32 << 10;

/// The longest log message, and the most messages and bytes: slightly more than the host accepts,
/// so that the host reports the excess.
const MESSAGE_BYTES: usize = 4 << 10;
const MESSAGES: usize = 1001;
const ALL_MESSAGE_BYTES: usize = 68 << 10;

/// The number of lines that are shown from the start and the end of a traceback, which has the
/// exception, and of characters per line.
const TRACEBACK_LINES: (usize, usize) = (20, 40);
const LINE_CHARS: usize = 400;

/// Messages of the interpreter about values that are not awaitable.
const AWAITABLE: [&str; 2] = ["awaitable is required", "can't be awaited"];

/// Takes what a script prints: the first [`SHOWN_BYTES`], and how much more there was.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    text: String,
    left_out: u64,
    log: Log,
}

/// Logs what is printed: what one `print` prints is a message.
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

impl Printed {
    /// Takes what the host prints for the script.
    pub(crate) fn show(&mut self, text: &str) {
        self.push(text);
    }

    /// Takes lines of the host, which begin a line.
    pub(crate) fn show_lines(&mut self, lines: &str) {
        if !lines.is_empty() && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
        self.push(lines);
    }

    fn push(&mut self, text: &str) {
        let room = match self.left_out {
            0 => SHOWN_BYTES - self.text.len(),
            // Nothing is added after an omission.
            _ => 0,
        };
        let taken = &text[..text.floor_char_boundary(room)];
        self.text.push_str(taken);
        self.left_out += (text.len() - taken.len()) as u64;
    }

    /// Returns the output, on lines of its own.
    fn into_lines(mut self) -> String {
        self.log.send();
        let mut text = self.text;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.left_out > 0 {
            let _ = writeln!(text, "[{} more bytes were printed: print less]", self.left_out);
        }
        text
    }
}

impl PrintWriterCallback for Printed {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.push(&output);
        self.log.push(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        let mut text = [0; 4];
        let text = &*end.encode_utf8(&mut text);
        self.push(text);
        // The end of a `print` as a rule; others are part of what is printed.
        match end {
            '\n' => self.log.send(),
            _ => self.log.push(text),
        }
        Ok(())
    }
}

/// The answer of a script that came to its end.
pub(crate) fn success(printed: Printed, value: &MontyObject) -> String {
    let mut answer = printed.into_lines();
    if *value == MontyObject::None {
        if answer.is_empty() {
            return "nothing was printed, and the script does not end with a value".to_owned();
        }
        answer.truncate(answer.trim_end_matches('\n').len());
        return answer;
    }
    let text = to_text(value);
    answer.push_str(cut(&text, SHOWN_BYTES));
    if text.len() > SHOWN_BYTES {
        let left_out = text.len() - cut(&text, SHOWN_BYTES).len();
        let _ = write!(answer, "\n[{left_out} more bytes of the value: end with a part of it]");
    }
    answer
}

/// The error of a script that an exception ended.
pub(crate) fn failure(
    printed: Printed,
    exception: &MontyException,
    tools: &mut Tools,
    awaited: &Awaited,
) -> String {
    let mut message = printed.into_lines();
    let traceback = exception.to_string();
    message.push_str(&shorten(&awaited.restore(&traceback)));
    let said = exception.message().unwrap_or_default();
    match exception.exc_type() {
        ExcType::ModuleNotFoundError => {
            let _ = write!(message, "\nthe modules here are {}", MODULES.join(", "));
        }
        ExcType::NameError => {
            let name = said.split('\'').nth(1).unwrap_or_default();
            if let Some(tool) = tools.nearest(name) {
                let _ = write!(message, "\ndid you mean the tool `{tool}`? help() lists all");
            }
        }
        ExcType::TypeError
            if tools.were_called() && AWAITABLE.iter().any(|it| said.contains(it)) =>
        {
            message.push_str(
                "\na call of a tool gives its result; where it stands in `await …` or \
                 `gather(…)`, or in a list that is gathered, it gives a future",
            );
        }
        ExcType::MemoryError => {
            let _ = write!(
                message,
                "\na value may take at most {} GiB; work on a part of the data at a time",
                VALUE_BYTES >> 30
            );
        }
        ExcType::RecursionError => {
            message
                .push_str("\ncalls may be 1,000 deep; use a loop, or a list of what is left to do");
        }
        _ => {}
    }
    message
}

/// Adds what calling tools took, where the script called some.
pub(crate) fn with_spent(mut answer: String, spent: &Spent) -> String {
    if let Some(line) = spent.line() {
        answer.push('\n');
        answer.push_str(&line);
    }
    answer
}

/// A traceback without the middle of a long one, and without the end of long lines.
fn shorten(traceback: &str) -> String {
    let lines: Vec<&str> = traceback.lines().collect();
    let (first, last) = TRACEBACK_LINES;
    let left_out = lines.len().saturating_sub(first + last);
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        if left_out > 0 && at == first {
            let _ = writeln!(text, "  [{left_out} lines are left out]");
        }
        if left_out == 0 || at < first || at >= first + left_out {
            match line.char_indices().nth(LINE_CHARS) {
                Some((end, _)) => {
                    let _ = writeln!(text, "{}…", &line[..end]);
                }
                None => {
                    let _ = writeln!(text, "{line}");
                }
            }
        }
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}
