//! YAML: blocks with two spaces, strings plain only if no parser interprets them differently.
//! Implemented here, since crates write only 64-bit numbers.

use serde_json::{Map, Value};

use super::{Bounded, Stop};

/// Maximum length of a key that is written on the line of its colon; YAML allows 1,024 characters.
const KEY_BYTES: usize = 1_000;

/// Writes a document.
pub(super) fn write(text: &mut Bounded, value: &Value) -> Result<(), Stop> {
    match value {
        Value::Array(items) if !items.is_empty() => sequence(text, items, 0),
        Value::Object(map) if !map.is_empty() => mapping(text, map, 0, false),
        value => {
            scalar(text, value, 1)?;
            text.push("\n")
        }
    }
}

/// Writes an item of the root sequence.
pub(super) fn item(text: &mut Bounded, value: &Value) -> Result<(), Stop> {
    sequence(text, std::slice::from_ref(value), 0)
}

fn sequence(text: &mut Bounded, items: &[Value], depth: usize) -> Result<(), Stop> {
    for item in items {
        text.indent(depth)?;
        match item {
            Value::Object(map) if !map.is_empty() => {
                text.push("- ")?;
                mapping(text, map, depth + 1, true)?;
            }
            Value::Array(items) if !items.is_empty() => {
                text.push("-\n")?;
                sequence(text, items, depth + 1)?;
            }
            item => {
                text.push("- ")?;
                scalar(text, item, depth + 1)?;
                text.push("\n")?;
            }
        }
    }
    Ok(())
}

/// Writes a mapping. With `is_begun` its first key continues the current line.
fn mapping(
    text: &mut Bounded,
    map: &Map<String, Value>,
    depth: usize,
    is_begun: bool,
) -> Result<(), Stop> {
    for (index, (key, value)) in map.iter().enumerate() {
        if index > 0 || !is_begun {
            text.indent(depth)?;
        }
        if key.len() > KEY_BYTES {
            text.push("? ")?;
            string(text, key)?;
            text.push("\n")?;
            text.indent(depth)?;
        } else {
            string(text, key)?;
        }
        match value {
            Value::Object(map) if !map.is_empty() => {
                text.push(":\n")?;
                mapping(text, map, depth + 1, false)?;
            }
            Value::Array(items) if !items.is_empty() => {
                text.push(":\n")?;
                sequence(text, items, depth + 1)?;
            }
            value => {
                text.push(": ")?;
                scalar(text, value, depth + 1)?;
                text.push("\n")?;
            }
        }
    }
    Ok(())
}

/// Writes a value on one line, or a string with several lines as a block with this indentation.
fn scalar(text: &mut Bounded, value: &Value, depth: usize) -> Result<(), Stop> {
    match value {
        Value::Null => text.push("null"),
        Value::Bool(value) => text.push(if *value { "true" } else { "false" }),
        Value::Number(number) => text.push(number.as_str()),
        Value::Array(_) => text.push("[]"),
        Value::Object(_) => text.push("{}"),
        Value::String(value) if is_block(value) => block(text, value, depth),
        Value::String(value) => string(text, value),
    }
}

/// Writes a string on one line, escaped if necessary.
fn string(text: &mut Bounded, value: &str) -> Result<(), Stop> {
    if is_plain(value) {
        return text.push(value);
    }
    text.push("\"")?;
    let mut buffer = [0; 4];
    for char in value.chars() {
        match char {
            '"' => text.push("\\\"")?,
            '\\' => text.push("\\\\")?,
            '\n' => text.push("\\n")?,
            '\r' => text.push("\\r")?,
            '\t' => text.push("\\t")?,
            char if is_printable(char) => text.push(char.encode_utf8(&mut buffer))?,
            char if u32::from(char) > 0xffff => {
                text.push(&format!("\\U{:08x}", u32::from(char)))?
            }
            char => text.push(&format!("\\u{:04x}", u32::from(char)))?,
        }
    }
    text.push("\"")
}

/// Writes a literal block. The caller writes the last line break.
fn block(text: &mut Bounded, value: &str, depth: usize) -> Result<(), Stop> {
    text.push(if value.ends_with('\n') { "|" } else { "|-" })?;
    for line in value.lines() {
        text.push("\n")?;
        if !line.is_empty() {
            text.indent(depth)?;
            text.push(line)?;
        }
    }
    Ok(())
}

/// Returns true if a string can be a block, which must not change its lines.
fn is_block(value: &str) -> bool {
    let is_line = |line: &str| line.is_empty() || !line.trim_matches([' ', '\t']).is_empty();
    value.contains('\n')
        && !value.starts_with(['\n', ' ', '\t'])
        && !value.ends_with("\n\n")
        && value.chars().all(|char| char == '\n' || char == '\t' || is_printable(char))
        && value.lines().all(is_line)
}

/// Returns true if a string needs no quotes, also in YAML 1.1: it starts with a letter and is not a
/// word for a boolean or null.
fn is_plain(value: &str) -> bool {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_plain = |char: char| char.is_alphanumeric() || "_-./+@() ".contains(char);
    value.starts_with(char::is_alphabetic)
        && !value.ends_with(' ')
        && value.chars().all(is_plain)
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Returns true if YAML allows a character unescaped.
fn is_printable(char: char) -> bool {
    !char.is_control()
        && !matches!(char, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}'..='\u{ffff}')
}
