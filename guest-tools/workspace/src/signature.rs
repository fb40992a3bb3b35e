//! Binary formats whose files may look like text.

/// Maximum number of bytes that may precede `%PDF-`: `Adobe Acrobat` allows 1,024, and some
/// programs write a blank line or a byte order mark.
const PDF_BYTES: usize = 16;

/// The first bytes of formats whose files may start without a NUL byte.
const BEGINNINGS: [&[u8]; 24] = [
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"II*\0",
    b"MM\0*",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
    b"\xfd7zXZ",
    b"7z\xbc\xaf\x27\x1c",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"Rar!\x1a\x07",
    b"LZIP\x01",
    b"\x04\x22\x4d\x18",
    b"OggS\0",
    b"fLaC\0",
    b"ID3\x02\0",
    b"ID3\x03\0",
    b"ID3\x04\0",
    b"\x7fELF",
    b"\0asm",
    b"\xca\xfe\xba\xbe",
    b"SQLite format 3\0",
];

/// Returns true if the start of a file has the signature of a binary format. Text never starts like
/// this.
pub(crate) fn is_known_binary(bytes: &[u8]) -> bool {
    let is_version = |rest: &[u8]| matches!(rest, [b'0'..=b'9', b'.', b'0'..=b'9', ..]);
    let pdf = bytes[..bytes.len().min(PDF_BYTES + 5)].windows(5).position(|it| it == b"%PDF-");
    let is_container = |name: &[u8; 4]| bytes.get(8..12) == Some(name);
    BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning))
        || pdf.is_some_and(|at| is_version(&bytes[at + 5..]) && is_lead(&bytes[..at]))
        || bytes.starts_with(b"RIFF") && [b"WEBP", b"WAVE", b"AVI "].into_iter().any(is_container)
        || bytes.starts_with(b"BZh") && bytes.get(4..10) == Some(b"1AY&SY")
}

/// Returns true if bytes may precede a PDF: white space, or a byte order mark.
fn is_lead(bytes: &[u8]) -> bool {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_their_first_bytes() {
        for binary in [
            &b"%PDF-1.4\n%\x93\x8c"[..],
            b"\r\n%PDF-2.0",
            b"\xef\xbb\xbf%PDF-1.7",
            b"\x1f\x8b\x08\x08",
            b"RIFF$abcWEBPVP8 ",
            b"BZh91AY&SY",
            b"GIF89a",
        ] {
            assert!(is_known_binary(binary), "{binary:?}");
        }
        for text in [
            &b""[..],
            b"%PDF-",
            b"%PDF-x is how a PDF begins",
            b"# %PDF-1.4",
            b"BM is no bitmap",
            b"RIFFs of 1981",
            b"BZh9",
            b"PK",
            b"%!PS-Adobe-3.0",
            b"{\\rtf1}",
        ] {
            assert!(!is_known_binary(text), "{text:?}");
        }
    }
}
