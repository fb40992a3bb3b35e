//! The format of the answers.

/// Maximum number of displayed characters of a name, and of content.
const NAME_CHARS: usize = 60;
const CONTENT_CHARS: usize = 200;

/// The result of an attempt: a fact, or the code of a refusal.
pub(crate) type Tried = Result<String, Refusal>;

/// A refusal, formatted for the sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) String);

impl Refusal {
    /// Creates a refusal with an error code of an interface.
    pub(crate) fn of(code: &str) -> Self {
        Self(format!("refused ({code})"))
    }

    /// Creates a refusal with an error code in one of several steps.
    #[cfg(feature = "network")]
    pub(crate) fn at(code: &str, step: &str) -> Self {
        Self(format!("refused ({code}) at {step}"))
    }
}

impl From<wasip2::filesystem::types::ErrorCode> for Refusal {
    fn from(code: wasip2::filesystem::types::ErrorCode) -> Self {
        Self::of(code.name())
    }
}

/// Formats the operation and its result.
pub(crate) fn sentence(tried: &str, result: Tried) -> String {
    let result = result.unwrap_or_else(|Refusal(refusal)| refusal);
    format!("{tried}: {result}")
}

/// Formats a name of any length and kind on one line.
pub(crate) fn shown(name: &str) -> String {
    if name.is_empty() {
        return "``".to_owned();
    }
    shortened(name, NAME_CHARS)
}

/// Formats content of any length and kind on one line.
pub(crate) fn content(bytes: &[u8]) -> String {
    shortened(&String::from_utf8_lossy(bytes), CONTENT_CHARS)
}

/// Formats a number with its noun: `1 directory`, `2 directories`.
pub(crate) fn count(number: usize, one: &str, several: &str) -> String {
    let things = if number == 1 { one } else { several };
    format!("{number} {things}")
}

/// Formats a list, or `none`.
pub(crate) fn list(things: &[String]) -> String {
    if things.is_empty() { "none".to_owned() } else { things.join(", ") }
}

fn shortened(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    for character in text.chars().take(limit) {
        match character {
            '\n' => shown.push_str("\\n"),
            character if character.is_control() => shown.extend(character.escape_default()),
            character => shown.push(character),
        }
    }
    if text.chars().nth(limit).is_some() {
        shown.push_str(&format!("… ({} bytes)", text.len()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_to_one_line() {
        assert_eq!(shown("a/b"), "a/b");
        assert_eq!(shown(""), "``");
        assert_eq!(shown("a\0b\nc\u{1b}"), "a\\u{0}b\\nc\\u{1b}");
        assert_eq!(shown(&"ä".repeat(61)), format!("{}… (122 bytes)", "ä".repeat(60)));
        assert_eq!(content(b"a\xff\n"), "a\u{fffd}\\n");
    }

    #[test]
    fn a_refusal_is_named_by_its_code() {
        let refused = wasip2::filesystem::types::ErrorCode::NotPermitted;
        assert_eq!(sentence("read a", Err(refused.into())), "read a: refused (not-permitted)");
        assert_eq!(sentence("mkdir a", Ok("done".into())), "mkdir a: done");
    }
}
