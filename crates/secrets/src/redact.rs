//! Redaction: values of secrets are masked in what comes back and what is shown.
//!
//! This is defence in depth against a server that echoes what it was sent. A server that
//! wants to pass a value on can spell it in ways that are not known here.

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;

use crate::encodings::{Escapes, decode, spellings};
use crate::value::SecretValue;

/// What stands in place of each byte of a value. The length stays, and with it what counts
/// bytes.
pub const MASK: u8 = b'*';

/// Finds the values of secrets in bytes: as they are, in base64 at any offset, in hex, and
/// each of these also with percent or JSON escapes.
///
/// Finding takes time in proportion to the bytes that are looked through.
#[derive(Default)]
pub struct Redactor {
    /// Absent where there is nothing to find.
    automaton: Option<AhoCorasick>,
    spellings: Vec<Vec<u8>>,
    /// Which escapes are taken away, each time anew: a value that holds a percent sign or a
    /// backslash may stand as it is where only the others are escapes.
    escapes: Vec<Escapes>,
}

/// Masks the values in bytes that come in pieces, wherever those are cut.
///
/// It holds back no more than could be the start of a value.
pub struct RedactionFilter {
    redactor: Arc<Redactor>,
    /// What came and was not given on yet.
    held: Vec<u8>,
    /// How much of its start belongs to a value that was found before.
    masked: usize,
}

impl Redactor {
    /// Finds these values.
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
        // It fails above two billion states, of which the values are far.
        let automaton = (!all.is_empty()).then(|| AhoCorasick::new(&all)).and_then(Result::ok);
        Self { automaton, spellings: all, escapes }
    }

    /// Whether there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// Whether a value is in there.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        let Some(automaton) = &self.automaton else { return false };
        automaton.is_match(bytes)
            || self.escapes.iter().any(|escapes| {
                decode(bytes, *escapes).is_some_and(|decoded| automaton.is_match(&decoded.bytes))
            })
    }

    /// Masks the values in there. Returns whether there were any.
    pub fn redact(&self, bytes: &mut [u8]) -> bool {
        let spans = self.look(bytes).spans;
        for span in &spans {
            bytes[span.clone()].fill(MASK);
        }
        !spans.is_empty()
    }

    /// Masks the values in a text. Returns whether there were any.
    pub fn redact_text(&self, text: &mut String) -> bool {
        if !self.finds(text.as_bytes()) {
            return false;
        }
        let mut bytes = std::mem::take(text).into_bytes();
        self.redact(&mut bytes);
        // What is masked starts and ends at characters, since values are text.
        *text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        true
    }

    /// A filter for bytes that come in pieces.
    pub fn filter(self: &Arc<Self>) -> RedactionFilter {
        RedactionFilter { redactor: self.clone(), held: Vec::new(), masked: 0 }
    }

    /// Finds what is in there, and from where on a value may go on after the end.
    fn look(&self, bytes: &[u8]) -> Looked {
        let mut looked = Looked { spans: Vec::new(), open: bytes.len() };
        let Some(automaton) = &self.automaton else { return looked };
        let found = automaton.find_overlapping_iter(bytes).map(|found| found.range());
        looked.spans.extend(found);
        looked.open -= self.open_end(bytes);
        for decoded in self.escapes.iter().filter_map(|escapes| decode(bytes, *escapes)) {
            let found = automaton.find_overlapping_iter(&decoded.bytes);
            looked.spans.extend(found.map(|found| {
                decoded.source(found.start()).start..decoded.source(found.end() - 1).end
            }));
            let open = decoded.whole - self.open_end(&decoded.bytes[..decoded.whole]);
            looked.open = looked.open.min(decoded.source(open).start);
        }
        looked
    }

    /// The length of the longest end of some bytes that a spelling starts with, and goes on.
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

/// What was found in some bytes.
struct Looked {
    /// Where values are; they may overlap.
    spans: Vec<Range<usize>>,
    /// Before this nothing more will be found, whatever follows.
    open: usize,
}

impl RedactionFilter {
    /// Takes a piece, and returns what can be given on.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let Looked { spans, open } = self.redactor.look(&self.held);
        self.release(&spans, open)
    }

    /// Returns what was held back, after the last piece.
    pub fn finish(mut self) -> Vec<u8> {
        let Looked { spans, .. } = self.redactor.look(&self.held);
        self.release(&spans, self.held.len())
    }

    /// Gives on what lies before `open`, masked.
    fn release(&mut self, spans: &[Range<usize>], open: usize) -> Vec<u8> {
        let rest = self.held.split_off(open);
        let mut released = std::mem::replace(&mut self.held, rest);
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
    fn a_value_is_masked_in_every_spelling() {
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
            // As PHP writes JSON, and as a query holds base64.
            let encoded = STANDARD.encode(format!("{user}\u{3ff}\u{3ff}\u{3ff}\u{3ff}\u{3ff}"));
            let secret = "\u{3ff}\u{3ff}\u{3ff}\u{3ff}\u{3ff}";
            for escaped in [encoded.replace('/', "\\/"), encoded.replace('/', "%2F")] {
                assert!(redacted(&[secret], &escaped).contains("*********"), "{escaped}");
            }
        }
    }

    #[test]
    fn a_value_that_looks_escaped_itself_is_masked_where_it_is_escaped() {
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
    fn values_that_overlap_are_masked_whole() {
        assert_eq!(redacted(&["abcdefgh", "efghijkl"], "abcdefghijkl"), "************");
        assert_eq!(redacted(&["abcdefgh", "abcdefghij"], "abcdefghij"), "**********");
        assert_eq!(redacted(&["aaaaaaaa"], &"a".repeat(20)), "*".repeat(20));
    }

    #[test]
    fn a_filter_holds_back_only_what_may_become_a_value() {
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
    fn what_is_held_back_is_bounded() {
        let redactor = Arc::new(Redactor::new([&value("aaaaaaaa"), &value("%%%%%%%%")]));
        let mut filter = redactor.filter();
        for _ in 0..1_000 {
            filter.push(b"aaaaaaaaaaaaa%%%%%%%%%%%%%%%");
            assert!(filter.held.len() < 64);
        }
    }

    /// A value as servers spell it.
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
        fn nothing_of_a_value_shows_wherever_it_is_cut(
            secret in "[ -~é😀]{8,20}",
            // Without `%` and a backslash, of which a value may become a part.
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
            // Nothing of it can be decoded again.
            prop_assert!(!redactor.finds(&out));
            if how == 0 || how == 1 || how == 2 {
                prop_assert!(whole[noise.len()..][..spelling.len()].iter().all(|byte| *byte == MASK));
            }
        }
    }
}
