//! Files that are not UTF-8: they are searched in the text form that `read_file` shows.

use std::io::{self, Cursor, Read};

use kitbag_workspace::{Decoded, Encoding, decode, looks_binary};

use crate::walk::Found;

/// Maximum size of a file that is converted to text for the search. `read_file` has the same limit
/// for other encodings.
const WHOLE_BYTES: u64 = 8 << 20;

/// Size of the first read: enough to recognize UTF-16.
const FIRST_BYTES: usize = 16 << 10;

/// A file, and whether the part that was read is UTF-8.
pub(crate) struct Sniffed<R> {
    /// The bytes of the first read that were not consumed.
    first: Cursor<Vec<u8>>,
    file: R,
    /// The start of a character that the next piece completes.
    rest: Vec<u8>,
    encoding: Seen,
    /// The file starts like a binary format. A NUL byte may follow later, or never.
    pub(crate) is_binary: bool,
}

/// The whole text of a file.
pub(crate) enum Whole {
    Text(Decoded),
    Binary,
    /// The file has more than [`WHOLE_BYTES`].
    TooLarge,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Utf8,
    /// UTF-16 with a byte order mark, which `grep-searcher` recognizes.
    Utf16 {
        big_endian: bool,
    },
    Other,
}

impl<R: Read> Sniffed<R> {
    /// Reads the start of a file.
    pub(crate) fn new(mut file: R) -> io::Result<Self> {
        let mut first = vec![0; FIRST_BYTES];
        let read = file.read(&mut first)?;
        first.truncate(read);
        let encoding = match first.as_slice() {
            [0xff, 0xfe, ..] => Seen::Utf16 { big_endian: false },
            [0xfe, 0xff, ..] => Seen::Utf16 { big_endian: true },
            // UTF-16 without a byte order mark.
            first if first.contains(&0) && !looks_binary(first) => Seen::Other,
            _ => Seen::Utf8,
        };
        let is_binary = looks_binary(&first) && !first.contains(&0);
        Ok(Self { first: Cursor::new(first), file, rest: Vec::new(), encoding, is_binary })
    }

    /// Returns true if `grep-searcher` read the file as valid text.
    pub(crate) fn is_utf8(&self) -> bool {
        self.encoding != Seen::Other
    }

    /// Returns the encoding of a UTF-16 byte order mark.
    pub(crate) fn marked(&self) -> Option<Encoding> {
        match self.encoding {
            Seen::Utf16 { big_endian } => Some(Encoding::Utf16 { big_endian, mark: true }),
            Seen::Utf8 | Seen::Other => None,
        }
    }

    fn look_at(&mut self, piece: &[u8]) {
        if self.encoding != Seen::Utf8 || self.rest.is_empty() && piece.is_ascii() {
            return;
        }
        let joined = [self.rest.as_slice(), piece].concat();
        self.rest.clear();
        if let Err(error) = str::from_utf8(&joined) {
            let rest = &joined[error.valid_up_to()..];
            // A character may be truncated at the end of a piece, but not at the end of the file.
            match error.error_len().is_none() && !piece.is_empty() {
                true => self.rest.extend_from_slice(rest),
                false => self.encoding = Seen::Other,
            }
        }
    }
}

impl<R: Read> Read for Sniffed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.first.read(buffer)? {
            0 => self.file.read(buffer)?,
            read => read,
        };
        if !buffer.is_empty() {
            self.look_at(&buffer[..read]);
        }
        Ok(read)
    }
}

/// Reads the text of a file in any encoding.
pub(crate) fn read_text(found: &Found<'_>) -> io::Result<Whole> {
    let file = found.directory.file(found.name, found.is_named)?;
    let mut content = Vec::new();
    file.take(WHOLE_BYTES + 1).read_to_end(&mut content)?;
    Ok(match content.len() as u64 <= WHOLE_BYTES {
        true => decode(content).map_or(Whole::Binary, Whole::Text),
        false => Whole::TooLarge,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_across_pieces_are_utf8() {
        let check = |pieces: &[&[u8]], expected: bool| {
            let mut sniffed = Sniffed::new(io::empty()).unwrap();
            pieces.iter().for_each(|piece| sniffed.look_at(piece));
            assert_eq!(sniffed.read(&mut [0]).unwrap(), 0);
            assert_eq!(sniffed.is_utf8(), expected, "{pieces:?}");
        };
        check(&[b"abc", "\u{e4}".as_bytes()], true);
        check(&[b"abc\xc3", b"\xa4"], true);
        check(&[b"\xf0", b"\x9f", b"\x98", b"\x80 "], true);
        check(&[b"abc\xc3"], false);
        check(&[b"abc\xc3", b"abc"], false);
        check(&[b"caf\xe9 "], false);
    }

    #[test]
    fn utf16_is_recognized_by_its_first_bytes() {
        let check = |content: &[u8], expected: bool| {
            assert_eq!(Sniffed::new(content).unwrap().is_utf8(), expected, "{content:?}");
        };
        check(b"a\0b\0c\0d\0", false);
        check(b"\xff\xfea\0", true);
        check(b"abc\0\0\0\0\0", true);
    }
}
