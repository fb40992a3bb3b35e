//! What a call answers: what the script printed, then its value or its traceback.

use std::borrow::Cow;
use std::fmt::Write as _;

use kitbag_workspace::cut;
use monty_types::{ExcType, MontyException, MontyObject, PrintWriterCallback};

use crate::MODULES;
use crate::value::to_text;

/// How much of what a script prints is in the answer, and how much of its value, in bytes.
pub(crate) const SHOWN_BYTES: usize = 32 << 10;

/// How many lines of a traceback are shown from its beginning and from its end, which has
/// the exception, and how many characters of each line.
const TRACEBACK_LINES: (usize, usize) = (20, 40);
const LINE_CHARS: usize = 400;

/// Takes what a script prints: the first [`SHOWN_BYTES`], and how much more there was.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    text: String,
    left_out: u64,
}

impl Printed {
    fn push(&mut self, text: &str) {
        let room = match self.left_out {
            0 => SHOWN_BYTES - self.text.len(),
            // Nothing goes in behind what was left out.
            _ => 0,
        };
        let taken = &text[..text.floor_char_boundary(room)];
        self.text.push_str(taken);
        self.left_out += (text.len() - taken.len()) as u64;
    }

    /// What was printed, on lines of its own.
    fn into_lines(self) -> String {
        let mut text = self.text;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.left_out > 0 {
            let _ = writeln!(
                text,
                "[{} more bytes were printed: print less, or write a file where that is granted]",
                self.left_out
            );
        }
        text
    }
}

impl PrintWriterCallback for Printed {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.push(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.push(end.encode_utf8(&mut [0; 4]));
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
pub(crate) fn failure(printed: Printed, exception: &MontyException) -> String {
    let mut message = printed.into_lines();
    message.push_str(&shorten(&exception.to_string()));
    if exception.exc_type() == ExcType::ModuleNotFoundError {
        let _ = write!(message, "\nthe modules here are {}", MODULES.join(", "));
    }
    message
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
