//! Text as it may appear in other text: literally or encoded.
//!
//! Base64 and hex have a list of spellings of a text. Percent and JSON escapes have too many
//! spellings, so [`decode`] removes them before the search.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::{memchr, memchr2};

/// Returns the spellings of a text: literally, in hex, and in base64 at every offset. Each is at
/// least as long as the text.
pub(crate) fn spellings(text: &[u8]) -> Vec<Vec<u8>> {
    let hex = |digits: &[u8; 16]| -> Vec<u8> {
        let pair = |byte: &u8| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]];
        text.iter().flat_map(pair).collect()
    };
    let mut spellings = vec![text.to_vec(), hex(b"0123456789abcdef"), hex(b"0123456789ABCDEF")];
    // Forms write a space as `+`.
    spellings.push(text.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect());
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text);
        // The characters that contain only bits of the text.
        let whole = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            spellings.push(engine.encode(&bytes).as_bytes()[whole.clone()].to_vec());
        }
    }
    spellings.sort();
    spellings.dedup();
    spellings
}

/// Bytes without percent and JSON escapes, and their original positions.
#[derive(Default)]
pub(crate) struct Decoded {
    pub(crate) bytes: Vec<u8>,
    /// The escapes, in order.
    escapes: Vec<DecodedEscape>,
    /// The number of bytes before an incomplete escape at the end. Default: all.
    pub(crate) whole: usize,
}

/// An escape and the bytes that it encodes.
struct DecodedEscape {
    /// The range of the decoded bytes.
    bytes: Range<usize>,
    source: Range<usize>,
}

/// The escapes to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// Percent and JSON escapes.
    Both,
    /// Percent escapes only.
    Percent,
    /// JSON escapes only.
    Json,
}

impl Escapes {
    /// Returns the position of the next escape.
    fn next(self, source: &[u8]) -> Option<usize> {
        match self {
            Self::Both => memchr2(b'%', b'\\', source),
            Self::Percent => memchr(b'%', source),
            Self::Json => memchr(b'\\', source),
        }
    }
}

/// Decodes escapes. Returns `None` if there are none.
pub(crate) fn decode(source: &[u8], escapes: Escapes) -> Option<Decoded> {
    let mut next = escapes.next(source)?;
    let mut decoded = Decoded { bytes: Vec::with_capacity(source.len()), ..Decoded::default() };
    let (mut at, mut open) = (0, None);
    loop {
        decoded.bytes.extend_from_slice(&source[at..next]);
        let start = decoded.bytes.len();
        let mut utf8 = [0; 4];
        let length = match escape(&source[next..]) {
            Escape::Byte(byte, length) => {
                decoded.bytes.push(byte);
                length
            }
            Escape::Char(c, length) => {
                decoded.bytes.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
                length
            }
            other => {
                if matches!(other, Escape::Open) {
                    open.get_or_insert(start);
                }
                decoded.bytes.push(source[next]);
                1
            }
        };
        at = next + length;
        if length > 1 {
            let bytes = start..decoded.bytes.len();
            decoded.escapes.push(DecodedEscape { bytes, source: next..at });
        }
        match escapes.next(&source[at..]) {
            Some(offset) => next = at + offset,
            None => break,
        }
    }
    decoded.bytes.extend_from_slice(&source[at..]);
    decoded.whole = open.unwrap_or(decoded.bytes.len());
    Some(decoded)
}

impl Decoded {
    /// Returns the source range of the byte at this index. After the last byte, returns an empty
    /// range at the end.
    pub(crate) fn source(&self, index: usize) -> Range<usize> {
        let after = self.escapes.partition_point(|place| place.bytes.start <= index);
        let Some(place) = after.checked_sub(1).map(|last| &self.escapes[last]) else {
            return index..index + 1;
        };
        if place.bytes.contains(&index) {
            return place.source.clone();
        }
        let start = place.source.end + (index - place.bytes.end);
        start..start + 1
    }
}

enum Escape {
    None,
    Byte(u8, usize),
    Char(char, usize),
    /// The escape is cut by the end of the source.
    Open,
}

/// Decodes an escape at the start of `source`.
fn escape(source: &[u8]) -> Escape {
    match source {
        [b'%', high, low, ..] => match (digit(*high), digit(*low)) {
            (Some(high), Some(low)) => Escape::Byte((high << 4 | low) as u8, 3),
            _ => Escape::None,
        },
        [b'%'] | [b'\\'] => Escape::Open,
        [b'%', high] if digit(*high).is_some() => Escape::Open,
        [b'\\', b'u', rest @ ..] => unit_escape(source, rest),
        [b'\\', letter, ..] => match letter {
            b'"' | b'\\' | b'/' | b'\'' => Escape::Byte(*letter, 2),
            b'b' => Escape::Byte(8, 2),
            b'f' => Escape::Byte(12, 2),
            b'n' => Escape::Byte(b'\n', 2),
            b'r' => Escape::Byte(b'\r', 2),
            b't' => Escape::Byte(b'\t', 2),
            _ => Escape::None,
        },
        _ => Escape::None,
    }
}

/// Decodes `\uXXXX`, or a surrogate pair. `rest` follows the `u`.
fn unit_escape(source: &[u8], rest: &[u8]) -> Escape {
    let unit = |digits: &[u8]| -> Result<u32, bool> {
        let mut value = 0;
        for index in 0..4 {
            let Some(byte) = digits.get(index) else { return Err(true) };
            value = value << 4 | digit(*byte).ok_or(false)?;
        }
        Ok(value)
    };
    let open = |is_open| if is_open { Escape::Open } else { Escape::None };
    let first = match unit(rest) {
        Ok(first) => first,
        Err(is_open) => return open(is_open),
    };
    if let Some(c) = char::from_u32(first) {
        return Escape::Char(c, 6);
    }
    if first >= 0xdc00 {
        return Escape::None;
    }
    match &source[6..] {
        [] | [b'\\'] => Escape::Open,
        [b'\\', b'u', rest @ ..] => match unit(rest) {
            Ok(second @ 0xdc00..=0xdfff) => {
                let c = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                char::from_u32(c).map_or(Escape::None, |c| Escape::Char(c, 12))
            }
            Ok(_) => Escape::None,
            Err(is_open) => open(is_open),
        },
        _ => Escape::None,
    }
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_with_positions() {
        let check = |source: &str, expected: &str, open: Option<usize>| {
            let decoded = decode(source.as_bytes(), Escapes::Both).unwrap();
            assert_eq!(String::from_utf8_lossy(&decoded.bytes), expected, "{source}");
            let open = open.unwrap_or(source.len());
            assert_eq!(decoded.source(decoded.whole).start, open, "{source}");
            // The source ranges are adjacent.
            let mut last = 0..0;
            for index in 0..decoded.bytes.len() {
                let from = decoded.source(index);
                assert!(from == last || from.start == last.end, "{source}");
                last = from;
            }
            assert_eq!(last.end, source.len());
        };
        check("a%62c", "abc", None);
        check("100% of %zz", "100% of %zz", None);
        check(r#"\u0061\"\/\n\x"#, "a\"/\n\\x", None);
        check(r"\u00e9\ud83d\ude00", "é😀", None);
        check(r"\ude00\ud83dx", r"\ude00\ud83dx", None);
        check("ab%", "ab%", Some(2));
        check("ab%4", "ab%4", Some(2));
        check(r"\", r"\", Some(0));
        check(r"a\u00", r"a\u00", Some(1));
        check(r"a\ud83d\ude0", r"a\ud83d\ude0", Some(1));
        assert!(decode(b"nothing escaped", Escapes::Both).is_none());
    }
}
