//! Files that are not UTF-8: they are searched in the text form that `read_file` shows.

use std::io::{self, Read};

use kitbag_workspace::{Decoded, Encoding, decode, looks_binary};

use crate::walk::Found;

/// Maximum size of a file that is converted to text for the search. `read_file` has the same limit
/// for other encodings.
const WHOLE_BYTES: u64 = 8 << 20;

/// Size of the first read: enough to recognize UTF-16.
const FIRST_BYTES: usize = 16 << 10;

/// A file, and whether the part that was read is UTF-8.
pub(crate) struct Sniffed<'a, R> {
    /// The bytes of the first read that were not consumed.
    first: &'a [u8],
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

impl<'a, R: Read> Sniffed<'a, R> {
    /// Reads the start of a file into a buffer.
    pub(crate) fn new(mut file: R, buffer: &'a mut Vec<u8>) -> io::Result<Self> {
        buffer.resize(FIRST_BYTES, 0);
        let read = file.read(buffer)?;
        let first = &buffer[..read];
        let encoding = match first {
            [0xff, 0xfe, ..] => Seen::Utf16 { big_endian: false },
            [0xfe, 0xff, ..] => Seen::Utf16 { big_endian: true },
            // UTF-16 without a byte order mark.
            first if first.contains(&0) && !looks_binary(first) => Seen::Other,
            _ => Seen::Utf8,
        };
        let is_binary = looks_binary(first) && !first.contains(&0);
        Ok(Self { first, file, rest: Vec::new(), encoding, is_binary })
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
        if self.encoding != Seen::Utf8 || self.rest.is_empty() && is_ascii(piece) {
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

impl<R: Read> Read for Sniffed<'_, R> {
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

/// Like the method of slices, which looks at four bytes at a time in WebAssembly. A compiler can turn
/// the loop over a block into vector instructions.
fn is_ascii(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().all(|block| block.iter().fold(0, |all, byte| all | byte).is_ascii())
        && rest.is_ascii()
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
            let mut buffer = Vec::new();
            let mut sniffed = Sniffed::new(io::empty(), &mut buffer).unwrap();
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
        check(&[&[b'a'; 100], b"\xe9 "], false);
        check(&[&[[b'a'; 70].as_slice(), b"\xe9", &[b'a'; 70]].concat()], false);
    }

    #[test]
    fn utf16_is_recognized_by_its_first_bytes() {
        let check = |content: &[u8], expected: bool| {
            let mut buffer = Vec::new();
            let sniffed = Sniffed::new(content, &mut buffer).unwrap();
            assert_eq!(sniffed.is_utf8(), expected, "{content:?}");
        };
        check(b"a\0b\0c\0d\0", false);
        check(b"\xff\xfea\0", true);
        check(b"abc\0\0\0\0\0", true);
    }
}
