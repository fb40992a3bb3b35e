//! Opens files for reading.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::{Decoded, Kind, Location, decode, explain, shown, stat};
use sha2::{Digest, Sha256};

use crate::numbers::size;

/// Maximum size of a file that is read as a whole and can be edited: text, line endings and a
/// changed copy must fit into the memory of a call, 64 MiB by default.
pub(crate) const WHOLE_BYTES: u64 = 8 << 20;

/// The number of hexadecimal digits of a shown digest.
const DIGEST_DIGITS: usize = 12;

/// The minimum number of digits in `expect`.
const EXPECTED_DIGITS: usize = 8;

/// A file that is open for reading.
pub(crate) struct Opened {
    pub(crate) location: Location,
    pub(crate) size: u64,
    file: File,
}

impl Opened {
    /// Opens a regular file.
    pub(crate) fn open(call: &Call, given: &str) -> Result<Self, ErrorInfo> {
        Self::at(Location::new(call, given)?)
    }

    /// Like [`open`](Self::open), for a location.
    pub(crate) fn at(location: Location) -> Result<Self, ErrorInfo> {
        let failed = |error: io::Error| explain(&location, "read", &error);
        let is_directory = || {
            let given = &location.given;
            ErrorInfo::new(format!("`{given}` is a directory; `list_dir` lists it"))
        };
        let file = File::open(&location.path).map_err(|error| {
            // The host refuses a secret, and names the line that allows it.
            match stat(&location.path).map(|found| found.kind) {
                Ok(Kind::Directory) => is_directory(),
                Ok(Kind::Other) => failed(io::Error::from_raw_os_error(libc::ENOTSUP)),
                Ok(Kind::File | Kind::Link | Kind::Secret) | Err(_) => failed(error),
            }
        })?;
        let found = file.metadata().map_err(failed)?;
        if found.is_dir() {
            return Err(is_directory());
        }
        let size = found.len();
        Ok(Self { location, size, file })
    }

    /// Reads at most this many bytes from an offset.
    pub(crate) fn read(&mut self, from: u64, bytes: u64) -> Result<Vec<u8>, ErrorInfo> {
        let mut read = || -> io::Result<Vec<u8>> {
            self.file.seek(SeekFrom::Start(from))?;
            // One more byte: a file that has not grown is read with a single request, which returns
            // less than requested.
            let expected = bytes.min(self.size.saturating_sub(from).saturating_add(1));
            let mut content = vec![0; usize::try_from(expected).map_err(io::Error::other)?];
            let length = self.file.read(&mut content)?;
            let is_at_end = from + length as u64 == self.size && length < content.len();
            content.truncate(length);
            if !is_at_end {
                let rest = bytes.saturating_sub(length as u64);
                Read::by_ref(&mut self.file).take(rest).read_to_end(&mut content)?;
            }
            Ok(content)
        };
        read().map_err(|error| explain(&self.location, "read", &error))
    }

    /// Reads the whole file. `None` if it is larger than [`WHOLE_BYTES`].
    pub(crate) fn read_whole(&mut self) -> Result<Option<Vec<u8>>, ErrorInfo> {
        if self.size > WHOLE_BYTES {
            return Ok(None);
        }
        // The file may grow while it is read.
        let content = self.read(0, WHOLE_BYTES + 1)?;
        Ok((content.len() as u64 <= WHOLE_BYTES).then_some(content))
    }

    /// Returns the error for a file that is too large for an operation.
    pub(crate) fn too_large(&self, what: &str) -> ErrorInfo {
        let (given, found, limit) = (&self.location.given, size(self.size), size(WHOLE_BYTES));
        ErrorInfo::new(format!("`{given}` has {found}; the limit for {what} is {limit}; split it"))
    }
}

/// Decodes the content of a file as text.
pub(crate) fn text(location: &Location, content: Vec<u8>) -> Result<Decoded, ErrorInfo> {
    decode(content).map_err(|content| binary(location, &content))
}

/// Returns the error for a binary file: its type and the tool that reads it.
pub(crate) fn binary(location: &Location, content: &[u8]) -> ErrorInfo {
    let kind = infer::get(content);
    let name = kind.map_or("", |kind| kind.mime_type());
    let shown = if name.is_empty() { String::new() } else { format!(" ({name})") };
    let advice = match is_media(name) {
        true => "; `read_media` gives it",
        false => "; `file_info` shows its size and digest",
    };
    ErrorInfo::new(format!("`{}` is binary{shown}, not text{advice}", location.given))
}

/// Returns true if `read_media` returns files of this type as an image or audio.
pub(crate) fn is_media(mime_type: &str) -> bool {
    mime_type.starts_with("image/") || mime_type.starts_with("audio/")
}

/// Returns the value for `expect`: the first hexadecimal digits of a file's SHA-256.
pub(crate) fn digest(content: &[u8]) -> String {
    let mut digits = full_digest(content);
    digits.truncate(DIGEST_DIGITS);
    digits
}

fn full_digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses to continue if a file differs from the one that the caller has read.
pub(crate) fn check_expected(
    location: &Location,
    expect: Option<&str>,
    content: Option<&[u8]>,
) -> Result<(), ErrorInfo> {
    let Some(expect) = expect else { return Ok(()) };
    let given = &location.given;
    let expect = expect.trim().to_ascii_lowercase();
    if expect.len() < EXPECTED_DIGITS || !expect.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ErrorInfo::new(format!(
            "`expect` is `{}`, which is not the digest of a file; `read_file` returns it",
            shown(&expect)
        )));
    }
    let Some(content) = content else {
        return Err(ErrorInfo::new(format!("`{given}` does not exist, but `expect` has a digest")));
    };
    let found = full_digest(content);
    match found.starts_with(&expect) {
        true => Ok(()),
        false => Err(ErrorInfo::new(format!(
            "`{given}` has changed: its digest is `{}`, not `{}`; read it again",
            &found[..DIGEST_DIGITS],
            shown(&expect)
        ))),
    }
}
