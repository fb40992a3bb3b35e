//! Values in messages, which are truncated: an error must not repeat a whole document.

use serde_json::value::RawValue;

/// Maximum number of characters of a displayed value.
const VALUE_CHARACTERS: usize = 200;

/// Maximum number of characters of a displayed pointer. It is data: a shorter pointer would refer
/// to a different value.
const POINTER_CHARACTERS: usize = 1_000;

/// Maximum number of characters of a displayed message whose values cannot be distinguished from
/// its words.
const MESSAGE_CHARACTERS: usize = 400;

/// Returns the start of a value.
pub(crate) fn value(text: &str) -> String {
    head(text, VALUE_CHARACTERS)
}

/// Truncates every JSON value and every text in backticks in a message, and the message itself.
pub(crate) fn message(text: &str) -> String {
    // Most messages are short and need no scan.
    if text.len() <= VALUE_CHARACTERS {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['[', '{', '"', '`']) {
        let (words, from) = rest.split_at(at);
        shown.push_str(words);
        // Text that a message quotes need not be JSON.
        if let Some((quoted, after)) = from.strip_prefix('`').and_then(|it| it.split_once('`')) {
            shown.push_str(&format!("`{}`", value(quoted)));
            rest = after;
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(from).into_iter::<&RawValue>();
        let length = match values.next() {
            Some(Ok(_)) => values.byte_offset(),
            _ => 1,
        };
        shown.push_str(&value(&from[..length]));
        rest = &from[length..];
    }
    shown.push_str(rest);
    if shown.chars().nth(2 * MESSAGE_CHARACTERS).is_none() {
        return shown;
    }
    // Unquoted text as long as a value: keeps the start and the end.
    let start = shown.chars().count() - MESSAGE_CHARACTERS;
    let end: String = shown.chars().skip(start).collect();
    head(&shown, MESSAGE_CHARACTERS) + &end
}

/// Formats a JSON pointer, whose keys may have any length.
pub(crate) fn pointer(pointer: &str) -> String {
    head(pointer, POINTER_CHARACTERS)
}

fn head(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_messages_are_truncated() {
        let long = format!("[{}0]", "0,".repeat(1_000));
        let shown = message(&format!("cannot calculate {long} + {long} here"));
        let cut = &long[..200];
        assert_eq!(shown, format!("cannot calculate {cut}… + {cut}… here"));
        assert_eq!(message("cannot index 1 with \"a\""), "cannot index 1 with \"a\"");
        let number = "0x".repeat(1_000);
        let shown = message(&format!("the number `{number}`, not `1`, and `"));
        assert_eq!(shown, format!("the number `{}…`, not `1`, and `", &number[..200]));
    }

    #[test]
    fn messages_without_values_are_cut_in_the_middle() {
        let shown = message(&format!("begin [NaN {}end", "x".repeat(5_000)));
        assert!(shown.starts_with("begin [NaN xxx") && shown.ends_with("xxxend"), "{shown}");
        assert_eq!(shown.chars().count(), 2 * MESSAGE_CHARACTERS + 1);
    }
}
