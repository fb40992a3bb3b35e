//! Finds the `id` of a message that is not stored.

use rmcp::model::RequestId;

/// Scans a message in chunks for its `id`, without storing the message.
#[derive(Debug, Default)]
pub(crate) struct Skim {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
    is_value: bool,
    has_id: bool,
    /// The outermost object has ended.
    is_over: bool,
    /// The input has more than one message, or more than one `id`.
    is_ambiguous: bool,
    /// The current or last key of the outermost object.
    key: Vec<u8>,
    id: Vec<u8>,
}

/// Maximum bytes of a key or an `id` that are kept: more than any client uses.
const KEPT_BYTES: usize = 1 << 10;

impl Skim {
    pub(crate) fn feed(&mut self, part: &[u8]) {
        for &byte in part {
            let is_syntax = !self.is_string;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_string => self.is_escaped = true,
                b'"' => self.is_string = !self.is_string,
                b'{' | b'[' if is_syntax => {
                    self.is_ambiguous |= self.is_over;
                    self.depth += 1;
                }
                b'}' | b']' if is_syntax => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_over |= self.depth == 0;
                }
                _ => {}
            }
            if self.depth != 1 {
                continue;
            }
            match byte {
                b',' | b'{' if is_syntax => {
                    self.is_value = false;
                    self.key.clear();
                }
                b':' if is_syntax && !self.is_value => {
                    self.is_value = true;
                    let is_id = self.key == br#""id""#;
                    self.is_ambiguous |= is_id && self.has_id;
                    self.has_id |= is_id;
                }
                _ => {
                    let is_id = self.key == br#""id""#;
                    let kept = match self.is_value {
                        false => &mut self.key,
                        true if is_id => &mut self.id,
                        true => continue,
                    };
                    if kept.len() < KEPT_BYTES && (!is_syntax || !byte.is_ascii_whitespace()) {
                        kept.push(byte);
                    }
                }
            }
        }
    }

    /// Returns the `id`, if there was exactly one.
    pub(crate) fn id(&self) -> Option<RequestId> {
        if self.is_ambiguous {
            return None;
        }
        serde_json::from_slice(&self.id).ok()
    }

    /// Returns the text of the `id`, if it is a number that is not a valid id.
    pub(super) fn invalid_number(&self) -> Option<&str> {
        let is_number = self.id.first().is_some_and(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        let is_invalid = !self.is_ambiguous && self.has_id && is_number && self.id().is_none();
        let text = str::from_utf8(&self.id).ok()?;
        (is_invalid && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn id_is_found_at_any_position_and_across_chunks() {
        let check = |text: &str, expected: Option<Value>| {
            for at in 0..=text.len() {
                let mut skim = Skim::default();
                skim.feed(&text.as_bytes()[..at]);
                skim.feed(&text.as_bytes()[at..]);
                let id = skim.id().map(|id| serde_json::to_value(id).unwrap());
                assert_eq!(id, expected, "{text} at {at}");
            }
        };
        check(r#"{"id":1,"params":{"id":2}}"#, Some(json!(1)));
        check(r#"{"params":{"id":2,"a":["id",3]}, "id" : "x\"y" }"#, Some(json!("x\"y")));
        check(r#"{"a":"\",\"id\":5","b":[{"id":6}],"id":-7}"#, Some(json!(-7)));
        check(r#"{"params":{"id":2}}"#, None);
        check(r#"{"x":"id","y":1}"#, None);
        // Two messages, or two ids.
        check(r#"{"id":1}{"id":2}"#, None);
        check(r#"{"id":1} , {"id":1}"#, None);
        check(r#"{"id":1,"id":2}"#, None);
        check(r#"{"id":1} []"#, None);
    }
}
