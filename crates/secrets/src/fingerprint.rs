//! Fingerprints, which name a finding without showing it.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The first eight bytes of a finding's SHA-256, formatted as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 8]);

/// The error for a string that is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 16 hexadecimal digits, as in the message about the finding")]
pub struct FingerprintError;

impl Fingerprint {
    pub(crate) fn of(finding: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(finding).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        Self([a, b, c, d, e, f, g, h])
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let is_hex = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(|number| Self(number.to_be_bytes())).ok_or(FingerprintError)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_fingerprints_are_parsed_back() {
        let own = Fingerprint::of(b"a finding");
        assert_eq!(own.to_string().parse(), Ok(own));
        assert_eq!(own.to_string().to_uppercase().parse(), Ok(own));
        for text in
            ["", "0123456789abcde", "0123456789abcdef0", "+123456789abcdef", "0123456789abcdeg"]
        {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text}");
        }
    }
}
