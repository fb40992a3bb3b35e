//! What both tools say below what they found.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::walk::PassedOver;

/// How much an answer may hold before the rest is only counted.
pub(crate) const ANSWER_BYTES: usize = 256 << 10;

/// How much is counted that an answer has no room for, until the search stops.
pub(crate) const COUNTED: u64 = 10_000;

/// A path on one line: what would end the line or is no character of a text is escaped.
pub(crate) fn shown(path: &str) -> Cow<'_, str> {
    if !path.contains(char::is_control) {
        return path.into();
    }
    let spell = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    path.chars().map(spell).collect::<String>().into()
}

/// A number and its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Adds what was passed over, a line each.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_line() {
        assert_eq!(shown("a b/ä.rs"), "a b/ä.rs");
        assert_eq!(shown("a\nb\u{1b}[1m"), "a\\nb\\u{1b}[1m");
    }
}
