//! Texts in the encoding that they have in their file.

use std::borrow::Cow;
use std::fmt;

use encoding_rs::WINDOWS_1252;

/// How much of a file tells whether it is text.
const SAMPLE_BYTES: usize = 8 << 10;

/// How a text is written in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    Utf8 {
        /// Whether the file begins with a byte order mark.
        mark: bool,
    },
    /// UTF-16.
    Utf16 {
        /// Whether the higher byte comes first.
        big_endian: bool,
        /// Whether the file begins with a byte order mark.
        mark: bool,
    },
    /// What is no UTF-8: Latin-1 as the web reads it (windows-1252), in which every byte is
    /// a character.
    Latin1,
}

/// A text and how its file writes it. A byte order mark is no part of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text.
    pub text: String,
    /// How the file writes it.
    pub encoding: Encoding,
}

/// Reads the whole content of a file as text; gives it back where it is binary.
///
/// What [`Encoding::encode`] makes of the unchanged text are the same bytes.
///
/// # Errors
///
/// The bytes, where they are no text.
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
    Ok(match String::from_utf8(bytes) {
        Ok(mut text) => {
            let mark = text.starts_with('\u{feff}');
            if mark {
                text.drain(..'\u{feff}'.len_utf8());
            }
            Decoded { text, encoding: Encoding::Utf8 { mark } }
        }
        Err(error) => {
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(error.as_bytes());
            Decoded { text: text.into_owned(), encoding: Encoding::Latin1 }
        }
    })
}

/// Whether the beginning of a file is not that of a text: it has a NUL byte, or one control
/// character in ten that texts do not have. UTF-16 is text.
pub fn looks_binary(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    if utf16(sample).is_some() {
        return false;
    }
    let is_odd = |byte: &&u8| matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127);
    sample.contains(&0) || sample.iter().filter(is_odd).count() * 10 > sample.len()
}

impl Encoding {
    /// UTF-8 without a byte order mark.
    pub const UTF_8: Self = Self::Utf8 { mark: false };

    /// Writes a text.
    ///
    /// # Errors
    ///
    /// The first character that the encoding does not have.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, char> {
        Ok(match self {
            Self::Utf8 { mark: false } => Cow::Borrowed(text.as_bytes()),
            Self::Utf8 { mark: true } => Cow::Owned(["\u{feff}", text].concat().into_bytes()),
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
            Self::Utf8 { mark: false } => "UTF-8",
            Self::Utf8 { mark: true } => "UTF-8 with a byte order mark",
            Self::Utf16 { big_endian: false, .. } => "UTF-16 LE",
            Self::Utf16 { big_endian: true, .. } => "UTF-16 BE",
            Self::Latin1 => "Latin-1",
        })
    }
}

/// Which UTF-16 it is, by its mark, or by where its NUL bytes are.
fn utf16(bytes: &[u8]) -> Option<Encoding> {
    let of = |big_endian, mark| Some(Encoding::Utf16 { big_endian, mark });
    match bytes {
        // A mark of UTF-32.
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
    // Without a mark: a text in a Latin script, of which every other byte is NUL.
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
    }

    #[test]
    fn what_is_binary_is_no_text() {
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None);
        check(b"\xff\xfe\0\0a\0\0\0", None);
        check(b"\xff\xfe\x00\xd8", None);
        check(b"\xff\xfea", None);
        check(b"a\0b", None);
        check(&[b"long text ".repeat(1000), vec![0]].concat(), None);
        check(b"\x01\x02\x03\x04\xf0\x9f", None);
    }

    #[test]
    fn a_character_that_an_encoding_does_not_have_is_named() {
        assert_eq!(Encoding::Latin1.encode("a\u{2192}b"), Err('\u{2192}'));
        assert!(Encoding::Latin1.encode("\u{20ac}").is_ok());
    }

    proptest! {
        #[test]
        fn a_text_that_was_decoded_is_encoded_to_the_same_bytes(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            mark in proptest::sample::select(vec![&b""[..], b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"]),
        ) {
            let bytes = [mark, &bytes].concat();
            if let Ok(decoded) = decode(bytes.clone()) {
                prop_assert_eq!(decoded.encoding.encode(&decoded.text).unwrap().into_owned(), bytes);
            }
        }
    }
}
