//! The encoding of a page.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use url::{Host, Url};

/// Number of bytes of a page that are examined for its encoding.
pub(crate) const HEAD_BYTES: usize = 4 << 10;

/// Number of bytes after the first non-ASCII byte that are examined to guess the encoding.
const GUESS_BYTES: usize = 256 << 10;

/// An encoding and its source.
#[derive(Clone)]
pub(crate) enum Charset {
    /// From a byte order mark or a declaration, or because the page is UTF-8.
    Known(&'static Encoding),
    /// The encoding must be guessed. An unknown declared label is kept for the note.
    Unknown { label: Option<String> },
}

impl Charset {
    /// Finds the encoding: from the byte order mark, otherwise `known`, otherwise from the
    /// declaration in the page, otherwise UTF-8 if all bytes of the page are valid UTF-8.
    pub(crate) fn find(head: &[u8], known: Option<&'static Encoding>, validity: &Validity) -> Self {
        if let Some((encoding, _)) = Encoding::for_bom(head) {
            return Self::Known(encoding);
        }
        if let Some(encoding) = known {
            return Self::Known(encoding);
        }
        // UTF-16 without a mark: every other byte of ASCII text is zero.
        let zeros =
            |first: usize| head.iter().skip(first).step_by(2).filter(|it| **it == 0).count();
        match (zeros(0) * 3 > head.len(), zeros(1) * 3 > head.len()) {
            (true, false) => return Self::Known(encoding_rs::UTF_16BE),
            (false, true) => return Self::Known(encoding_rs::UTF_16LE),
            _ => {}
        }
        let label = match declared(head) {
            // A page whose declaration is readable as ASCII is not in UTF-16.
            Some(Ok(encoding))
                if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE =>
            {
                return Self::Known(UTF_8);
            }
            // Many pages declare another encoding but are UTF-8.
            Some(Ok(_)) if validity.is_utf8() && !head.is_ascii() => return Self::Known(UTF_8),
            Some(Ok(encoding)) => return Self::Known(encoding),
            Some(Err(label)) => Some(label),
            None => None,
        };
        match validity.is_utf8() && !validity.has_escape {
            true => Self::Known(UTF_8),
            false => Self::Unknown { label },
        }
    }
}

/// Guesses the encoding of bytes that arrive in pieces.
pub(crate) struct Guess {
    detector: EncodingDetector,
    seen: usize,
}

impl Guess {
    pub(crate) fn new() -> Self {
        Self { detector: EncodingDetector::new(Iso2022JpDetection::Allow), seen: 0 }
    }

    /// Examines the next bytes. Returns whether more bytes would help.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> bool {
        if self.detector.feed(bytes, false) {
            self.seen += bytes.len();
        }
        self.seen < GUESS_BYTES
    }

    /// Marks the end of the bytes.
    pub(crate) fn end(&mut self) {
        self.detector.feed(&[], true);
    }

    /// Returns the most likely encoding. The top-level domain of `url` helps with short pages.
    pub(crate) fn encoding(self, url: Option<&Url>) -> &'static Encoding {
        let domain = match url.and_then(Url::host) {
            Some(Host::Domain(domain)) => domain.trim_end_matches('.').rsplit('.').next(),
            _ => None,
        };
        // The URL was parsed, so its host is in lower case and in Punycode.
        self.detector.guess(domain.map(str::as_bytes), Utf8Detection::Allow)
    }
}

/// Decodes text without a declared encoding. Also returns the note that names the guess.
pub fn guess<'a>(bytes: &'a [u8], url: Option<&Url>) -> (Cow<'a, str>, String) {
    let mut guess = Guess::new();
    if bytes.chunks(64 << 10).all(|piece| guess.look(piece)) {
        guess.end();
    }
    let encoding = guess.encoding(url);
    (encoding.decode_without_bom_handling(bytes).0, note(encoding, None))
}

/// Returns the note that names a guess.
pub(crate) fn note(encoding: &'static Encoding, label: Option<&str>) -> String {
    let name = encoding.name();
    match label {
        Some(label) => {
            let label = kitbag_workspace::quoted(label);
            format!("encoding guessed: {name}; the declared `{label}` is not known")
        }
        None => format!("encoding guessed: {name}; none is declared"),
    }
}

/// Returns the encoding that a page declares in `<meta charset="…">`,
/// `<meta content="…; charset=…">` or `<?xml encoding="…"?>`, or the label if it is unknown.
fn declared(head: &[u8]) -> Option<Result<&'static Encoding, String>> {
    let head = String::from_utf8_lossy(&head[..head.len().min(HEAD_BYTES)]).to_ascii_lowercase();
    let tags = head.split('<').filter(|tag| tag.starts_with("meta") || tag.starts_with("?xml"));
    let labels = tags.filter_map(|tag| {
        let name = if tag.starts_with('?') { "encoding" } else { "charset" };
        let value = tag[tag.find(name)? + name.len()..].trim_start().strip_prefix('=')?;
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|it: char| !(it.is_ascii_alphanumeric() || "-_:.+".contains(it)));
        Some(value[..end.unwrap_or(value.len())].to_owned())
    });
    let mut unknown = None;
    for label in labels.filter(|label| !label.is_empty()) {
        match Encoding::for_label(label.as_bytes()) {
            Some(encoding) => return Some(Ok(encoding)),
            None => unknown = unknown.or(Some(label)),
        }
    }
    unknown.map(Err)
}

/// Checks whether bytes that arrive in pieces are UTF-8.
#[derive(Default)]
pub(crate) struct Validity {
    is_invalid: bool,
    /// True if there is an escape sequence, as in ISO-2022-JP.
    has_escape: bool,
    /// True if there is a complete non-ASCII character.
    has_others: bool,
    /// The start of a character at the end of the last piece.
    rest: Vec<u8>,
}

impl Validity {
    pub(crate) fn look(&mut self, bytes: &[u8]) {
        if self.is_invalid {
            return;
        }
        self.has_escape |= bytes.windows(2).any(|it| matches!(it, [0x1b, b'$' | b'(']));
        let mut bytes = bytes;
        // A character has at most four bytes.
        while !self.rest.is_empty() && !bytes.is_empty() {
            self.rest.push(bytes[0]);
            bytes = &bytes[1..];
            match std::str::from_utf8(&self.rest) {
                Ok(_) => {
                    self.rest.clear();
                    self.has_others = true;
                }
                Err(error) if error.error_len().is_some() => self.is_invalid = true,
                Err(_) => {}
            }
            if self.is_invalid {
                return;
            }
        }
        let mut valid = bytes.len();
        if let Err(error) = std::str::from_utf8(bytes) {
            self.is_invalid = error.error_len().is_some();
            valid = error.valid_up_to();
            self.rest = bytes[valid..].to_vec();
        }
        self.has_others |= !bytes[..valid].is_ascii();
    }

    /// Returns whether the bytes are UTF-8. The last character may be incomplete.
    pub(crate) fn is_utf8(&self) -> bool {
        !self.is_invalid && (self.rest.is_empty() || self.has_others)
    }
}
