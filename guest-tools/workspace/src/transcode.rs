//! Text of any length in any encoding, read as UTF-8.

use std::io::{self, BufRead, Read};

use encoding_rs::{Decoder, DecoderResult, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::encoding::{Encoding, decode_invalid, is_latin1, looks_binary, utf16};

/// The number of bytes that are read and decoded at once.
const PIECE_BYTES: usize = 64 << 10;

/// Reads a text in any encoding as UTF-8, without its byte order mark.
///
/// [`decode`](crate::decode) uses the whole text to detect the encoding. This reader decides
/// between Latin-1 and UTF-8 with invalid bytes at the first invalid byte. It chooses Latin-1 if no
/// valid non-ASCII character precedes it and the piece has more invalid bytes than valid non-ASCII
/// characters.
///
/// # Errors
///
/// Those of the inner reader, and [`io::ErrorKind::InvalidData`] if the content is binary.
pub struct Transcoder<R> {
    inner: R,
    encoding: Option<Encoding>,
    /// Decoder for encodings other than UTF-8.
    decoder: Option<Decoder>,
    has_valid: bool,
    /// The start of a character that the next piece completes.
    rest: Vec<u8>,
    decoded: Vec<u8>,
    position: usize,
}

impl<R: Read> Transcoder<R> {
    /// Creates a reader. Reads no bytes yet.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            encoding: None,
            decoder: None,
            has_valid: false,
            rest: Vec::new(),
            decoded: Vec::new(),
            position: 0,
        }
    }

    /// Returns the encoding of the text that was read.
    pub fn encoding(&self) -> Encoding {
        self.encoding.unwrap_or(Encoding::UTF_8)
    }

    /// Decodes the next piece. Has no effect at the end.
    fn fill(&mut self) -> io::Result<()> {
        self.position = 0;
        self.decoded.clear();
        while self.decoded.is_empty() {
            let mut piece = std::mem::take(&mut self.rest);
            let begin = piece.len();
            let mut limited = (&mut self.inner).take(PIECE_BYTES as u64);
            let is_end = limited.read_to_end(&mut piece)? == 0;
            if is_end && begin == 0 && self.decoder.is_none() {
                return Ok(());
            }
            if self.encoding.is_none() {
                self.begin(&mut piece)?;
            }
            if self.decoder.is_none() {
                self.utf8(piece, is_end)?;
            } else {
                self.other(&piece, is_end)?;
            }
            if is_end {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Detects UTF-16 and binary content, and removes the byte order mark.
    fn begin(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        let encoding = utf16(piece);
        if let Some(Encoding::Utf16 { big_endian, mark }) = encoding {
            let encoding = if big_endian { UTF_16BE } else { UTF_16LE };
            self.decoder = Some(encoding.new_decoder_without_bom_handling());
            piece.drain(..if mark { 2 } else { 0 });
        } else if looks_binary(piece) {
            return Err(binary());
        }
        let mark = piece.starts_with("\u{feff}".as_bytes());
        piece.drain(..if mark { 3 } else { 0 });
        self.encoding = encoding.or(Some(Encoding::Utf8 { mark, has_invalid: false }));
        Ok(())
    }

    fn utf8(&mut self, piece: Vec<u8>, is_end: bool) -> io::Result<()> {
        let Err(error) = str::from_utf8(&piece) else {
            self.has_valid |= !piece.is_ascii();
            self.decoded = piece;
            return Ok(());
        };
        let (valid, invalid) = piece.split_at(error.valid_up_to());
        self.has_valid |= !valid.is_ascii();
        if error.error_len().is_none() && !is_end {
            self.rest = invalid.to_vec();
            self.decoded.extend_from_slice(valid);
            return Ok(());
        }
        if !self.has_valid && is_latin1(&piece) {
            self.encoding = Some(Encoding::Latin1);
            self.decoder = Some(WINDOWS_1252.new_decoder_without_bom_handling());
            return self.other(&piece, is_end);
        }
        if let Some(Encoding::Utf8 { has_invalid, .. }) = &mut self.encoding {
            *has_invalid = true;
        }
        // The end of the piece may be the start of a character.
        let last = piece.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        let end = match str::from_utf8(&piece[piece.len() - last..]) {
            Err(error) if error.error_len().is_none() && !is_end => piece.len() - last,
            _ => piece.len(),
        };
        self.rest = piece[end..].to_vec();
        self.decoded = decode_invalid(&piece[..end]).into_bytes();
        Ok(())
    }

    fn other(&mut self, piece: &[u8], is_end: bool) -> io::Result<()> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let length = decoder.max_utf8_buffer_length_without_replacement(piece.len());
        self.decoded.resize(length.unwrap_or_default(), 0);
        let (result, _, written) =
            decoder.decode_to_utf8_without_replacement(piece, &mut self.decoded, is_end);
        self.decoded.truncate(written);
        match result {
            DecoderResult::InputEmpty => Ok(()),
            _ => Err(binary()),
        }
    }
}

fn binary() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is binary, not text")
}

impl<R: Read> BufRead for Transcoder<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position == self.decoded.len() {
            self.fill()?;
        }
        Ok(&self.decoded[self.position..])
    }

    fn consume(&mut self, amount: usize) {
        self.position += amount;
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::decode;

    /// A reader that returns few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[track_caller]
    fn check(bytes: &[u8]) {
        let expected = decode(bytes.to_vec()).unwrap();
        for is_slow in [false, true] {
            let inner: Box<dyn Read> =
                if is_slow { Box::new(Slow(bytes)) } else { Box::new(bytes) };
            let mut transcoder = Transcoder::new(inner);
            let mut text = String::new();
            transcoder.read_to_string(&mut text).unwrap();
            assert!(text == expected.text, "{:?}", &text[..text.len().min(100)]);
            assert_eq!(transcoder.encoding(), expected.encoding);
        }
    }

    #[test]
    fn text_in_pieces_is_read_as_a_whole() {
        let long = "line with ascii only\n".repeat(10_000);
        check(b"");
        check(long.as_bytes());
        check(format!("\u{feff}{long}\u{e4}\u{1f600}{long}").as_bytes());
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        check(&[b"\xff\xfe".to_vec(), utf16(&format!("\u{e4}\u{1f600}{long}"))].concat());
        check(&utf16(&long));
        check(b"\xfe\xff\0a\0b");
        check(&[long.as_bytes(), b"caf\xe9 \x80"].concat());
        check(&[b"caf\xe9", long.as_bytes(), b"\xe4"].concat());
        check("\u{e4}".repeat(50_000).as_bytes());
        check(&["\u{e4}\u{e4}".as_bytes(), b"\xff", long.as_bytes(), b"\xc3"].concat());
    }

    #[test]
    fn binary_content_is_refused() {
        for bytes in [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], b"\xff\xfe\x00\xd8"] {
            let error = Transcoder::new(bytes).read_to_string(&mut String::new()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
