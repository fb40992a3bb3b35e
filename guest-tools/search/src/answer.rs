//! The notes below the results of both tools.

use std::fmt::Write as _;

use crate::walk::PassedOver;

/// Maximum length of an answer in bytes; further results are only counted.
pub(crate) const ANSWER_BYTES: usize = 256 << 10;

/// The note for an answer that reached [`ANSWER_BYTES`], with a fix.
pub(crate) const FULL: &str = "256 KiB are shown, the limit; narrow `path`, `globs` or `types`";

/// Maximum number of further results that are counted before the search stops.
pub(crate) const COUNTED: u64 = 10_000;

/// Formats a number and its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Adds a line for each kind of skipped entries.
pub(crate) fn add_passed_over(answer: &mut String, passed: &PassedOver) {
    let mut note = |text: String| {
        if !answer.is_empty() {
            answer.push('\n');
        }
        let _ = write!(answer, "[{text}]");
    };
    let counted = [
        (passed.secrets, "file that looks like a secret", "files that look like secrets"),
        (passed.binary, "binary file", "binary files"),
        (passed.unnamed, "name that is not UTF-8", "names that are not UTF-8"),
    ];
    let counted = counted.into_iter().filter(|(number, ..)| *number > 0);
    let counted: Vec<_> = counted.map(|(number, one, many)| count(number, one, many)).collect();
    if !counted.is_empty() {
        note(format!("passed over {}", counted.join(", ")));
    }
    if passed.failures > 0 {
        let more = passed.failures - passed.named_failures.len() as u64;
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        note(format!("not read: {}{more}", passed.named_failures.join("; ")));
    }
}
