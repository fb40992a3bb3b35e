//! Text in the encoding of its file.

use std::borrow::Cow;
use std::fmt;

use encoding_rs::WINDOWS_1252;

use crate::signature::is_known_binary;

/// The byte order mark.
const MARK: char = '\u{feff}';

/// The bytes of a file that are examined to detect text.
const SAMPLE_BYTES: usize = 8 << 10;

/// The private-use characters that represent invalid bytes: this plus the byte.
const INVALID: u32 = 0x0010_f700;

/// The encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    Utf8 {
        /// True if the file starts with a byte order mark.
        mark: bool,
        /// True if some bytes of the file are not UTF-8. In the text, each is a character from
        /// U+10F780 to U+10F7FF, which ends with the digits of the byte.
        has_invalid: bool,
    },
    /// UTF-16.
    Utf16 {
        /// True for big-endian.
        big_endian: bool,
        /// True if the file starts with a byte order mark.
        mark: bool,
    },
    /// Latin-1 as browsers define it (windows-1252), in which every byte is a character. Used if a
    /// file has more invalid bytes than non-ASCII UTF-8 characters.
    Latin1,
}

/// A text and its form in the file. A byte order mark is not part of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text.
    pub text: String,
    /// The encoding of the file.
    pub encoding: Encoding,
}

/// Decodes the whole content of a file as text.
///
/// [`Encoding::encode`] converts the unchanged text to the same bytes.
///
/// # Errors
///
/// The bytes, if they are binary.
pub fn decode(bytes: Vec<u8>) -> Result<Decoded, Vec<u8>> {
    if let Some(encoding) = utf16(&bytes) {
        let Encoding::Utf16 { big_endian, mark } = encoding else { return Err(bytes) };
        return match decode_utf16(&bytes[if mark { 2 } else { 0 }..], big_endian) {
            Some(text) => Ok(Decoded { text, encoding }),
            None => Err(bytes),
        };
    }
    if looks_binary(&bytes) || bytes.contains(&0) {
        return Err(bytes);
    }
    let (mut text, has_invalid) = match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) if is_latin1(error.as_bytes()) => {
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(error.as_bytes());
            return Ok(Decoded { text: text.into_owned(), encoding: Encoding::Latin1 });
        }
        Err(error) => (decode_invalid(error.as_bytes()), true),
    };
    let mark = text.starts_with(MARK);
    if mark {
        text.drain(..MARK.len_utf8());
    }
    Ok(Decoded { text, encoding: Encoding::Utf8 { mark, has_invalid } })
}

/// Returns true if bytes that are not UTF-8 are more likely Latin-1 than UTF-8 with a few invalid
/// bytes.
pub(crate) fn is_latin1(bytes: &[u8]) -> bool {
    if bytes.starts_with(MARK.encode_utf8(&mut [0; 4]).as_bytes()) {
        return false;
    }
    let (mut valid, mut invalid) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        invalid += chunk.invalid().len();
    }
    invalid > valid
}

/// Decodes UTF-8 with invalid bytes. The bytes of a character that represents an invalid byte are
/// treated as invalid themselves.
pub(crate) fn decode_invalid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let push = |text: &mut String, bytes: &[u8]| {
        text.extend(bytes.iter().filter_map(|byte| char::from_u32(INVALID + u32::from(*byte))));
    };
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match invalid_byte(char) {
                Some(_) => push(&mut text, char.encode_utf8(&mut [0; 4]).as_bytes()),
                None => text.push(char),
            }
        }
        push(&mut text, chunk.invalid());
    }
    text
}

fn encode_invalid(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        match invalid_byte(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Returns the invalid byte that a character represents.
fn invalid_byte(char: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(char).checked_sub(INVALID)?).ok()?;
    (!byte.is_ascii()).then_some(byte)
}

/// Returns true if the start of a file is binary: it has the signature of a binary format, a NUL
/// byte, or one in ten control characters that text does not have. UTF-16 is text.
pub fn looks_binary(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    if is_known_binary(sample) {
        return true;
    }
    if utf16(sample).is_some() {
        return false;
    }
    let is_odd = |byte: &&u8| matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127);
    sample.contains(&0) || sample.iter().filter(is_odd).count() * 10 > sample.len()
}

impl Encoding {
    /// UTF-8 without a byte order mark.
    pub const UTF_8: Self = Self::Utf8 { mark: false, has_invalid: false };

    /// Encodes a text.
    ///
    /// # Errors
    ///
    /// The first character that the encoding does not have.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, char> {
        Ok(match self {
            Self::Utf8 { mark: false, has_invalid: false } => Cow::Borrowed(text.as_bytes()),
            Self::Utf8 { mark, has_invalid } => {
                let mut bytes = if mark { MARK.to_string().into_bytes() } else { Vec::new() };
                match has_invalid {
                    true => bytes.append(&mut encode_invalid(text)),
                    false => bytes.extend_from_slice(text.as_bytes()),
                }
                Cow::Owned(bytes)
            }
            Self::Utf16 { big_endian, mark } => {
                let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
                let bytes = |unit: u16| match big_endian {
                    true => unit.to_be_bytes(),
                    false => unit.to_le_bytes(),
                };
                Cow::Owned(units.flat_map(bytes).collect())
            }
            Self::Latin1 => {
                let (bytes, _, has_others) = WINDOWS_1252.encode(text);
                if has_others {
                    let is_other =
                        |char: &char| WINDOWS_1252.encode(char.encode_utf8(&mut [0; 4])).2;
                    return Err(text.chars().find(is_other).unwrap_or_default());
                }
                bytes
            }
        })
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Utf8 { mark: false, has_invalid: false } => "UTF-8",
            Self::Utf8 { mark: true, has_invalid: false } => "UTF-8 with a byte order mark",
            Self::Utf8 { has_invalid: true, .. } => "UTF-8 with invalid bytes (0xff is U+10F7FF)",
            Self::Utf16 { big_endian: false, .. } => "UTF-16 LE",
            Self::Utf16 { big_endian: true, .. } => "UTF-16 BE",
            Self::Latin1 => "Latin-1",
        })
    }
}

/// Detects UTF-16 by its byte order mark, or by the positions of NUL bytes.
pub(crate) fn utf16(bytes: &[u8]) -> Option<Encoding> {
    let of = |big_endian, mark| Some(Encoding::Utf16 { big_endian, mark });
    match bytes {
        // A byte order mark of UTF-32.
        [0xff, 0xfe, 0, 0, ..] => return None,
        [0xff, 0xfe, ..] => return of(false, true),
        [0xfe, 0xff, ..] => return of(true, true),
        _ => {}
    }
    let pairs = bytes[..bytes.len().min(SAMPLE_BYTES)].chunks_exact(2);
    let all = pairs.len();
    let (mut first, mut second) = (0, 0);
    for pair in pairs {
        first += usize::from(pair[0] == 0);
        second += usize::from(pair[1] == 0);
    }
    // Without a byte order mark: in Latin text every other byte is NUL.
    match all >= 4 && bytes.len().is_multiple_of(2) {
        true if first == 0 && second * 10 >= all * 9 => of(false, false),
        true if second == 0 && first * 10 >= all * 9 => of(true, false),
        _ => None,
    }
}

fn decode_utf16(bytes: &[u8], big_endian: bool) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units = bytes.chunks_exact(2).map(|pair| match big_endian {
        true => u16::from_be_bytes([pair[0], pair[1]]),
        false => u16::from_le_bytes([pair[0], pair[1]]),
    });
    let text: Option<String> = char::decode_utf16(units).map(Result::ok).collect();
    text.filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Option<(&str, &str)>) {
        let decoded = decode(bytes.to_vec());
        let found = decoded.as_ref().map(|it| (&*it.text, it.encoding.to_string())).ok();
        assert_eq!(found, expected.map(|(text, encoding)| (text, encoding.to_owned())));
        if let Ok(decoded) = &decoded {
            assert_eq!(&*decoded.encoding.encode(&decoded.text).unwrap(), bytes);
        }
    }

    #[test]
    fn the_encoding_of_a_text_is_detected() {
        check(b"", Some(("", "UTF-8")));
        check("na\u{ef}ve".as_bytes(), Some(("na\u{ef}ve", "UTF-8")));
        check(b"\xef\xbb\xbfa", Some(("a", "UTF-8 with a byte order mark")));
        check(b"\xff\xfea\0\xac\x20", Some(("a\u{20ac}", "UTF-16 LE")));
        check(b"\xfe\xff\0a", Some(("a", "UTF-16 BE")));
        check(b"a\0b\0c\0d\0", Some(("abcd", "UTF-16 LE")));
        check(b"\0a\0b\0c\0d", Some(("abcd", "UTF-16 BE")));
        check(b"caf\xe9 \x80\x81", Some(("caf\u{e9} \u{20ac}\u{81}", "Latin-1")));
        let broken = "UTF-8 with invalid bytes (0xff is U+10F7FF)";
        check(b"na\xc3\xafve \xff\xe2", Some(("na\u{c3}\u{af}ve \u{ff}\u{e2}", "Latin-1")));
        check(b"na\xc3\xafve \xff", Some(("na\u{ef}ve \u{10f7ff}", broken)));
        check(b"\xef\xbb\xbf\xff", Some(("\u{10f7ff}", broken)));
    }

    #[test]
    fn binary_content_is_not_text() {
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None);
        check(b"\xff\xfe\0\0a\0\0\0", None);
        check(b"\xff\xfe\x00\xd8", None);
        check(b"\xff\xfea", None);
        check(b"a\0b", None);
        check(&[b"long text ".repeat(1000), vec![0]].concat(), None);
        check(b"\x01\x02\x03\x04\xf0\x9f", None);
        check(b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n", None);
    }

    #[test]
    fn unencodable_characters_are_named() {
        assert_eq!(Encoding::Latin1.encode("a\u{2192}b"), Err('\u{2192}'));
        assert!(Encoding::Latin1.encode("\u{20ac}").is_ok());
    }

    proptest! {
        #[test]
        fn decoded_text_is_encoded_to_the_same_bytes(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            mark in proptest::sample::select(vec![
                &b""[..], b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", "\u{10f7ff}éé".as_bytes(),
            ]),
        ) {
            let bytes = [mark, &bytes].concat();
            if let Ok(decoded) = decode(bytes.clone()) {
                prop_assert_eq!(decoded.encoding.encode(&decoded.text).unwrap().into_owned(), bytes);
            }
        }
    }
}
