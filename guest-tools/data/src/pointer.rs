//! Positions of values in the text of a JSON document.

use std::fmt::Write as _;

/// An object or array that encloses a position.
enum Frame<'a> {
    /// The text of the current key without quotes. `None` before the first key.
    Object(Option<&'a str>),
    Array(usize),
}

/// Returns the start of the value with a pointer, in bytes. The last value of a duplicate key is
/// used, as in the parsed document.
pub(crate) fn find(text: &str, wanted: &str) -> Option<usize> {
    let depth = wanted.matches('/').count();
    let mut found = None;
    visit(text, &mut |frames, start| {
        // Few values are that deep, and a pointer is formatted only for those.
        if frames.len() == depth && pointer(frames) == wanted {
            found = Some(start);
        }
        true
    });
    found
}

/// Returns the line and column of a byte, both from 1. A column is a character.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

/// Calls `visit` at each value with its enclosing frames and its start, until `visit` returns
/// false.
fn visit(text: &str, visit: &mut dyn FnMut(&[Frame<'_>], usize) -> bool) {
    let bytes = text.as_bytes();
    let mut frames: Vec<Frame<'_>> = Vec::new();
    // In an object, a string may be a key.
    let mut is_key = false;
    let mut position = 0;
    while let Some(byte) = bytes.get(position) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b':' => position += 1,
            b',' => {
                if let Some(Frame::Array(index)) = frames.last_mut() {
                    *index += 1;
                }
                is_key = matches!(frames.last(), Some(Frame::Object(_)));
                position += 1;
            }
            b'}' | b']' => {
                frames.pop();
                is_key = false;
                position += 1;
            }
            b'"' if is_key => {
                let end = end_of_string(bytes, position);
                let key = text.get(position + 1..end.saturating_sub(1)).unwrap_or_default();
                if let Some(Frame::Object(last)) = frames.last_mut() {
                    *last = Some(key);
                }
                is_key = false;
                position = end;
            }
            _ => {
                if !visit(&frames, position) {
                    return;
                }
                match byte {
                    b'{' => frames.push(Frame::Object(None)),
                    b'[' => frames.push(Frame::Array(0)),
                    _ => {}
                }
                is_key = *byte == b'{';
                position = match byte {
                    b'"' => end_of_string(bytes, position),
                    b'{' | b'[' => position + 1,
                    _ => {
                        let rest = &bytes[position..];
                        let end = rest.iter().position(|byte| b" \t\n\r,:]}\"{[".contains(byte));
                        position + end.unwrap_or(rest.len()).max(1)
                    }
                };
            }
        }
    }
}

/// Returns the position after the closing quote of a string.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut position = start + 1;
    while let Some(byte) = bytes.get(position) {
        match byte {
            b'"' => return position + 1,
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
    bytes.len()
}

/// Formats a pointer (RFC 6901) from keys in source form.
fn pointer(frames: &[Frame<'_>]) -> String {
    let mut pointer = String::new();
    for frame in frames {
        match frame {
            Frame::Object(None) => {}
            Frame::Object(Some(key)) => {
                let key = serde_json::from_str(&format!("\"{key}\"")).unwrap_or((*key).to_owned());
                push(&mut pointer, &key);
            }
            Frame::Array(index) => push(&mut pointer, &index.to_string()),
        }
    }
    pointer
}

/// Adds a key to a pointer.
pub(crate) fn push(pointer: &mut String, key: &str) {
    let _ = write!(pointer, "/{}", key.replace('~', "~0").replace('/', "~1"));
}

/// Formats a pointer from keys.
pub(crate) fn written(keys: &[String]) -> String {
    let mut pointer = String::new();
    keys.iter().for_each(|key| push(&mut pointer, key));
    pointer
}

/// Returns the keys of a pointer.
pub(crate) fn keys(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  \"a/b\": [1, {\"x\\\"~\": true}],\n  \"ä\": {\"y\": [[], null]}\n}";

    #[test]
    fn a_value_is_found_by_its_pointer() {
        let check = |pointer: &str, expected: &str, place: (usize, usize)| {
            let start = find(TEXT, pointer).unwrap();
            assert!(TEXT[start..].starts_with(expected), "{pointer}");
            assert_eq!(line_and_column(TEXT, start), place, "{pointer}");
        };
        check("", "{", (1, 1));
        check("/a~1b", "[1", (2, 10));
        check("/a~1b/0", "1", (2, 11));
        check("/a~1b/1/x\"~0", "true", (2, 23));
        check("/ä/y/1", "null", (3, 19));
        assert_eq!(find(TEXT, "/nothing"), None);
    }

    #[test]
    fn any_text_can_be_searched() {
        for text in ["", "}", "\"", "\"\\", "{\"a", "[,,]", "{,}", "]]", "{\"a\":\"b\\"] {
            find(text, "/a");
        }
    }
}
