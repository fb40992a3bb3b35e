//! JSON in the form that tools receive.

use kitbag_base::json::Digits;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Returns arguments as text. Equal arguments give equal text.
pub(crate) fn exact_text(arguments: Map<String, Value>, digits: &Digits) -> String {
    match digits.is_empty() {
        true => text(&arguments),
        false => digits.text(&Value::Object(arguments)),
    }
}

/// Returns a JSON object as text. Equal objects give equal text.
pub(crate) fn text(object: &Map<String, Value>) -> String {
    // Reserves room for the long values, so that the buffer is not copied as it grows.
    let long: usize = object.values().filter_map(Value::as_str).map(str::len).sum();
    let mut text = Vec::with_capacity(long + long / 16 + 128);
    serde_json::to_writer(&mut text, object).expect("every key is a string");
    String::from_utf8(text).expect("JSON is text")
}

/// Replaces escapes of printable ASCII characters, such as `\u0067`, by the characters if the text
/// is JSON. The value is unchanged, and keys and tokens are searched for in the new spelling.
pub(crate) fn replace_ascii_escapes(text: &mut String) {
    if !text.contains("\\u00") || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_str();
    // In JSON a backslash is followed by an ASCII character.
    while let Some((before, escape)) = rest.find('\\').map(|at| rest.split_at(at)) {
        plain.push_str(before);
        let code = escape.strip_prefix("\\u").and_then(|code| code.get(..4));
        let char = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match char.filter(|char| char.is_ascii_graphic() && !matches!(char, b'"' | b'\\')) {
            Some(char) => {
                plain.push(char::from(char));
                rest = &escape[6..];
            }
            None => {
                let (other, behind) = escape.split_at(2);
                plain.push_str(other);
                rest = behind;
            }
        }
    }
    plain.push_str(rest);
    *text = plain;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_escapes_are_replaced_only_in_json() {
        let check = |text: &str, expected: &str| {
            let mut replaced = text.to_owned();
            replace_ascii_escapes(&mut replaced);
            assert_eq!(replaced, expected);
            let value = |text: &str| serde_json::from_str::<Value>(text).ok();
            assert_eq!(value(&replaced), value(text), "the value stays the same");
        };
        check(r#"{"a":"\u0067hp\u005fx"}"#, r#"{"a":"ghp_x"}"#);
        check(
            r#"["\\u0067", "\n\u0022\u005c\u000a\u00e9\ud83d\ude00"]"#,
            r#"["\\u0067", "\n\u0022\u005c\u000a\u00e9\ud83d\ude00"]"#,
        );
        check(r#"a regex such as \u0067"#, r#"a regex such as \u0067"#);
        check(r#""\u0067"#, r#""\u0067"#);
    }
}
