//! Redaction: masks secret values in received and displayed data.
//!
//! This is defence in depth against a server that echoes requests. A malicious server can encode a
//! value in ways that are not recognized.

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;

use crate::encodings::{Escapes, decode, spellings};
use crate::value::SecretValue;

/// The replacement of each byte of a value. The length is preserved, so that lengths elsewhere
/// remain valid.
pub const MASK: u8 = b'*';

/// Finds secret values in bytes: literally, in base64 at any offset, in hex, and each of these also
/// with percent or JSON escapes.
///
/// The search takes linear time.
#[derive(Default)]
pub struct Redactor {
    /// `None` if there are no values.
    automaton: Option<AhoCorasick>,
    spellings: Vec<Vec<u8>>,
    /// The kinds of escapes to decode, each in a separate pass: a value that contains a percent
    /// sign or backslash may appear unescaped where only the other kind is used.
    escapes: Vec<Escapes>,
}

/// Masks values in bytes that arrive in pieces, wherever the pieces are cut.
///
/// Buffers only bytes that may be the start of a value.
pub struct RedactionFilter {
    redactor: Arc<Redactor>,
    /// Bytes that were received but not released.
    buffer: Vec<u8>,
    /// The number of buffered bytes at the start that belong to a value found before.
    masked: usize,
}

impl Redactor {
    /// Creates a redactor of these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Self {
        Self::of_texts(values.into_iter().map(|value| value.reveal().as_bytes()))
    }

    pub(crate) fn of_texts<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut all: Vec<_> = texts.into_iter().flat_map(spellings).collect();
        all.sort();
        all.dedup();
        let has = |byte: &u8| all.iter().any(|text| text.contains(byte));
        let escapes =
            [(Escapes::Both, true), (Escapes::Json, has(&b'%')), (Escapes::Percent, has(&b'\\'))];
        let escapes = escapes.into_iter().filter(|(_, is_looked_for)| *is_looked_for);
        let escapes = escapes.map(|(escapes, _)| escapes).collect();
        // Fails only above two billion states, which values never reach.
        let automaton = (!all.is_empty()).then(|| AhoCorasick::new(&all)).and_then(Result::ok);
        Self { automaton, spellings: all, escapes }
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// Returns true if the bytes contain a value.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        let Some(automaton) = &self.automaton else { return false };
        automaton.is_match(bytes)
            || self.escapes.iter().any(|escapes| {
                decode(bytes, *escapes).is_some_and(|decoded| automaton.is_match(&decoded.bytes))
            })
    }

    /// Masks the values. Returns true if there were any.
    pub fn redact(&self, bytes: &mut [u8]) -> bool {
        let spans = self.look(bytes).spans;
        for span in &spans {
            bytes[span.clone()].fill(MASK);
        }
        !spans.is_empty()
    }

    /// Masks the values in a string. Returns true if there were any.
    pub fn redact_text(&self, text: &mut String) -> bool {
        if !self.finds(text.as_bytes()) {
            return false;
        }
        let mut bytes = std::mem::take(text).into_bytes();
        self.redact(&mut bytes);
        // Masks start and end at character boundaries, since values are UTF-8.
        *text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        true
    }

    /// Creates a filter for bytes that arrive in pieces.
    pub fn filter(self: &Arc<Self>) -> RedactionFilter {
        RedactionFilter { redactor: self.clone(), buffer: Vec::new(), masked: 0 }
    }

    /// Finds the values, and the position from which a value may continue after the end.
    fn look(&self, bytes: &[u8]) -> Search {
        let mut search = Search { spans: Vec::new(), open: bytes.len() };
        let Some(automaton) = &self.automaton else { return search };
        let found = automaton.find_overlapping_iter(bytes).map(|found| found.range());
        search.spans.extend(found);
        search.open -= self.open_end(bytes);
        for decoded in self.escapes.iter().filter_map(|escapes| decode(bytes, *escapes)) {
            let found = automaton.find_overlapping_iter(&decoded.bytes);
            search.spans.extend(found.map(|found| {
                decoded.source(found.start()).start..decoded.source(found.end() - 1).end
            }));
            let open = decoded.whole - self.open_end(&decoded.bytes[..decoded.whole]);
            search.open = search.open.min(decoded.source(open).start);
        }
        search
    }

    /// Returns the length of the longest suffix that is a proper prefix of a spelling.
    fn open_end(&self, bytes: &[u8]) -> usize {
        let longest = self.spellings.iter().map(Vec::len).max().unwrap_or(0);
        let most = bytes.len().min(longest.saturating_sub(1));
        let goes_on = |length: &usize| {
            let end = &bytes[bytes.len() - length..];
            self.spellings.iter().any(|text| text.len() > *length && text.starts_with(end))
        };
        (1..=most).rev().find(goes_on).unwrap_or(0)
    }
}

/// The result of a search.
struct Search {
    /// The positions of values, which may overlap.
    spans: Vec<Range<usize>>,
    /// No further values start before this position in any continuation.
    open: usize,
}

impl RedactionFilter {
    /// Adds a piece and returns the bytes that can be released.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.buffer.extend_from_slice(piece);
        let Search { spans, open } = self.redactor.look(&self.buffer);
        self.release(&spans, open)
    }

    /// Returns the buffered bytes after the last piece.
    pub fn finish(mut self) -> Vec<u8> {
        let Search { spans, .. } = self.redactor.look(&self.buffer);
        self.release(&spans, self.buffer.len())
    }

    /// Releases the bytes before `open`, masked.
    fn release(&mut self, spans: &[Range<usize>], open: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(open);
        let mut released = std::mem::replace(&mut self.buffer, rest);
        let mut masked = self.masked;
        released[..masked.min(open)].fill(MASK);
        for span in spans {
            let end = span.end.min(open);
            if span.start < end {
                released[span.start..end].fill(MASK);
                masked = masked.max(span.end);
            }
        }
        self.masked = masked.saturating_sub(open);
        released
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> SecretValue {
        SecretValue::new(text.as_bytes().to_vec()).unwrap()
    }

    fn redacted(values: &[&str], text: &str) -> String {
        let values: Vec<_> = values.iter().map(|text| value(text)).collect();
        let mut text = text.to_owned();
        Redactor::new(&values).redact_text(&mut text);
        text
    }

    #[test]
    fn values_are_masked_in_every_spelling() {
        let check = |value: &str, text: &str, expected: &str| {
            assert_eq!(redacted(&[value], text), expected);
        };
        let token = "T0ken/of+ada";
        check(token, "say T0ken/of+ada!", "say ************!");
        check(token, "nothing of it", "nothing of it");
        check(token, "T0ken/of+ad", "T0ken/of+ad");
        check(token, "54306b656e2f6f662b616461.", "************************.");
        check(token, "54306B656E2F6F662B616461.", "************************.");
        check(token, "q=T0ken%2Fof%2bada&", "q=****************&");
        check(token, "%54%30%6b%65%6e%2f%6f%66%2b%61%64%61", &"*".repeat(36));
        check(token, r#""T0ken\/of\u002bada""#, r#""******************""#);
        check(token, r"T0ken\u002fof+ada", &"*".repeat(17));
        check("pass word", "a=pass+word&b=pass%20word", "a=*********&b=***********");
        check("pässwörd", r"p\u00e4ssw%C3%B6rd", &"*".repeat(18));
        check("key\"of\\me", r#"{"k":"key\"of\\me"}"#, r#"{"k":"***********"}"#);
        check("token😀token", r"token\ud83d\ude00token", &"*".repeat(22));
    }

    #[test]
    fn base64_is_found_at_every_offset() {
        for user in ["", "a", "ad", "ada"] {
            let text = format!("{user}:T0ken/of+ada?\u{ff}");
            for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let masked = redacted(&["T0ken/of+ada?"], &encoded);
                assert_eq!(masked.len(), encoded.len());
                let left = masked.trim_matches(|c| c != '*');
                assert!(left.len() >= 16 && left.bytes().all(|byte| byte == MASK), "{masked}");
            }
            // JSON as PHP writes it, and base64 in a query.
            let encoded = STANDARD.encode(format!("{user}\u{3ff}\u{3ff}\u{3ff}\u{3ff}\u{3ff}"));
            let secret = "\u{3ff}\u{3ff}\u{3ff}\u{3ff}\u{3ff}";
            for escaped in [encoded.replace('/', "\\/"), encoded.replace('/', "%2F")] {
                assert!(redacted(&[secret], &escaped).contains("*********"), "{escaped}");
            }
        }
    }

    #[test]
    fn values_that_look_escaped_are_masked_when_escaped() {
        for (secret, text) in [
            ("p%41ss/word/1", r"p%41ss\/word\/1"),
            ("p%41ss\"word", r#"p%41ss\"word"#),
            (r"p\nss word", r"p\nss%20word"),
            (r"p\nss word", r"p\\nss word"),
            ("p%41ss word", "p%2541ss%20word"),
            ("0\"%aaAA0", r#"0\"%aaAA0"#),
        ] {
            assert_eq!(redacted(&[secret], text), "*".repeat(text.len()), "{text}");
        }
    }

    #[test]
    fn overlapping_values_are_masked_completely() {
        assert_eq!(redacted(&["abcdefgh", "efghijkl"], "abcdefghijkl"), "************");
        assert_eq!(redacted(&["abcdefgh", "abcdefghij"], "abcdefghij"), "**********");
        assert_eq!(redacted(&["aaaaaaaa"], &"a".repeat(20)), "*".repeat(20));
    }

    #[test]
    fn filters_buffer_only_possible_values() {
        let redactor = Arc::new(Redactor::new([&value("secret-value")]));
        let mut filter = redactor.filter();
        assert_eq!(filter.push(b"data: one\n\n"), b"data: one\n\n");
        assert_eq!(filter.push(b"data: sec"), b"data: ");
        assert_eq!(filter.push(b"ond"), b"second");
        assert_eq!(filter.push(b" %7"), b" ");
        assert_eq!(filter.push(b"x secret-"), b"%7x ");
        assert_eq!(filter.push(b"value"), b"************");
        assert_eq!(filter.finish(), b"");
        let nothing = Arc::new(Redactor::default());
        assert_eq!(nothing.filter().push(b"secret%"), b"secret%");
    }

    #[test]
    fn buffered_bytes_are_bounded() {
        let redactor = Arc::new(Redactor::new([&value("aaaaaaaa"), &value("%%%%%%%%")]));
        let mut filter = redactor.filter();
        for _ in 0..1_000 {
            filter.push(b"aaaaaaaaaaaaa%%%%%%%%%%%%%%%");
            assert!(filter.buffer.len() < 64);
        }
    }

    /// Returns a value as servers spell it.
    fn spelled(value: &str, how: u8, before: &str) -> String {
        let percent = |byte: u8, upper: bool| match upper {
            true => format!("%{byte:02X}"),
            false => format!("%{byte:02x}"),
        };
        match how {
            0 => value.to_owned(),
            1 => value.bytes().map(|byte| format!("{byte:02x}")).collect(),
            2 => value.bytes().map(|byte| format!("{byte:02X}")).collect(),
            3 => value.bytes().map(|byte| percent(byte, true)).collect(),
            4 => value.bytes().map(|byte| percent(byte, false)).collect(),
            5 => value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect(),
            6 => serde_json::to_string(value).unwrap().trim_matches('"').to_owned(),
            7 => STANDARD.encode(format!("{before}{value}")),
            _ => URL_SAFE_NO_PAD.encode(format!("{before}{value}")),
        }
    }

    proptest! {
        #[test]
        fn no_part_of_a_value_is_released(
            secret in "[ -~é😀]{8,20}",
            // Without `%` and backslash, which could form an escape with a value.
            noise in "[ -$&-\\[\\]-~]{0,12}",
            before in "[a-z]{0,4}",
            how in 0u8..9,
            cuts in proptest::collection::vec(1usize..9, 1..30),
        ) {
            let secret = value(&secret);
            let spelling = spelled(secret.reveal(), how, &before);
            let text = format!("{noise}{spelling}{noise}");
            let redactor = Arc::new(Redactor::new([&secret]));
            let mut whole = text.clone().into_bytes();
            redactor.redact(&mut whole);

            let mut filter = redactor.filter();
            let (mut rest, mut out) = (text.as_bytes(), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, after) = rest.split_at(rest.len().min(*cut));
                out.extend(filter.push(piece));
                rest = after;
            }
            out.extend(filter.finish());
            prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole));
            // No part of it can be decoded.
            prop_assert!(!redactor.finds(&out));
            if how == 0 || how == 1 || how == 2 {
                prop_assert!(whole[noise.len()..][..spelling.len()].iter().all(|byte| *byte == MASK));
            }
        }
    }
}
