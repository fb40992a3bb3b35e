//! The answer of a call: the script's output, its value or traceback, and the cost of its calls.

use std::fmt::Write as _;

use kitbag_workspace::cut;

use crate::output::{Output, SHOWN_BYTES};
use crate::tools::Spent;

/// The number of lines that are shown from the start and the end of a traceback, which has the
/// exception, and of characters per line.
const TRACEBACK_LINES: (usize, usize) = (20, 40);
const LINE_CHARS: usize = 400;

/// The answer of a script that came to its end, with the text of its last value.
pub(crate) fn success(output: Output, value: Option<&str>) -> String {
    let mut answer = output.into_lines();
    let Some(value) = value else {
        if answer.is_empty() {
            return "nothing was printed, and the script does not end with a value".to_owned();
        }
        answer.truncate(answer.trim_end_matches('\n').len());
        return answer;
    };
    let shown = cut(value, SHOWN_BYTES);
    answer.push_str(shown);
    if shown.len() < value.len() {
        let omitted = value.len() - shown.len();
        let _ = write!(answer, "\n[{omitted} more bytes of the value: end with a part of it]");
    }
    answer
}

/// The error of a script that an exception ended.
pub(crate) fn failure(output: Output, problem: &str) -> String {
    output.into_lines() + &shorten(problem)
}

/// Adds the cost of the script's calls of tools, if it made any.
pub(crate) fn with_spent(mut answer: String, spent: &Spent) -> String {
    if let Some(line) = spent.line() {
        answer.push('\n');
        answer.push_str(&line);
    }
    answer
}

/// Removes the middle of a long traceback and the end of long lines.
fn shorten(traceback: &str) -> String {
    let lines: Vec<&str> = traceback.lines().collect();
    let (first, last) = TRACEBACK_LINES;
    let omitted = lines.len().saturating_sub(first + last);
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        if omitted > 0 && at == first {
            let _ = writeln!(text, "  [{omitted} lines are omitted]");
        }
        if omitted == 0 || at < first || at >= first + omitted {
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
