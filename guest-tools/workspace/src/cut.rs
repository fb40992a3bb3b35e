//! Functions to keep answers short and on one line.

use std::borrow::Cow;

/// Returns the start of a text, of at most this many bytes. Ends after a line if possible,
/// otherwise before a character that does not fit.
pub fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let whole = &text[..text.floor_char_boundary(bytes)];
    match whole.rfind('\n') {
        Some(end) => &whole[..=end],
        None => whole,
    }
}

/// Maximum number of characters of a caller's value in a message.
const SHOWN_CHARACTERS: usize = 200;

/// Returns the start of a value for a message.
pub fn shown(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &value[..end]).into(),
        None => value.into(),
    }
}

/// Formats a name on one line: unchanged, or as a JSON string if it is empty, starts with a quote
/// or contains control characters.
pub fn quoted(name: &str) -> String {
    let is_plain = !name.is_empty()
        && !name.starts_with('"')
        && !name.chars().any(|char| char.is_control() || is_mark(char));
    if is_plain { name.to_owned() } else { kitbag_sdk::json!(name).to_string() }
}

/// Returns whether a character separates lines without being escaped in JSON.
fn is_mark(char: char) -> bool {
    matches!(char, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_after_a_line_or_before_a_character() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("ab\ncd\nef", 7), "ab\ncd\n");
        assert_eq!(cut("aéb", 2), "a");
        assert_eq!(cut("é", 0), "");
    }

    #[test]
    fn a_long_value_is_cut_in_messages() {
        assert_eq!(shown("abc"), "abc");
        let long = "é".repeat(201);
        assert_eq!(shown(&long), format!("{}…", "é".repeat(200)));
    }

    #[test]
    fn unusual_names_are_quoted() {
        assert_eq!(quoted("a b.rs"), "a b.rs");
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
        assert_eq!(quoted("\"a\""), r#""\"a\"""#);
    }
}
