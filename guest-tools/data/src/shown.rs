//! Values inside messages, which are cut: a document must not come back as its own error.

use serde_json::value::RawValue;

/// The most characters of a shown value.
const VALUE_CHARACTERS: usize = 200;

/// The most characters of a shown pointer. It is data: a shorter one would refer to a different
/// value.
const POINTER_CHARACTERS: usize = 1_000;

/// The most characters of a shown message whose values cannot be distinguished from its words.
const MESSAGE_CHARACTERS: usize = 400;

/// The beginning of a value.
pub(crate) fn value(text: &str) -> String {
    head(text, VALUE_CHARACTERS)
}

/// A message in which every JSON value and every text in backticks is cut, and which is cut
/// itself.
pub(crate) fn message(text: &str) -> String {
    // Most messages are short, and a scan would only cost time.
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
    // Words that are as long as a value: the beginning and the end say most.
    let start = shown.chars().count() - MESSAGE_CHARACTERS;
    let end: String = shown.chars().skip(start).collect();
    head(&shown, MESSAGE_CHARACTERS) + &end
}

/// A JSON pointer, whose keys are as long as the document has them.
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
    fn every_value_of_a_message_is_cut() {
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
    fn a_message_without_values_is_cut_in_the_middle() {
        let shown = message(&format!("begin [NaN {}end", "x".repeat(5_000)));
        assert!(shown.starts_with("begin [NaN xxx") && shown.ends_with("xxxend"), "{shown}");
        assert_eq!(shown.chars().count(), 2 * MESSAGE_CHARACTERS + 1);
    }
}
