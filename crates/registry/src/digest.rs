//! SHA-256 digests, as registries write them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// A SHA-256 digest, written as `sha256:` and 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest(pub [u8; 32]);

/// The error for a string that is not a SHA-256 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be `sha256:` and 64 hexadecimal digits in lower case")]
pub struct Sha256DigestError;

impl Sha256Digest {
    /// Returns the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses the hexadecimal digits without the name of the algorithm.
    ///
    /// # Errors
    ///
    /// [`Sha256DigestError`] for any other string.
    pub fn from_hex(text: &str) -> Result<Self, Sha256DigestError> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 64 || !text.bytes().all(is_hex) {
            return Err(Sha256DigestError);
        }
        let mut digest = [0; 32];
        for (at, byte) in digest.iter_mut().enumerate() {
            let digits = &text[2 * at..2 * at + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| Sha256DigestError)?;
        }
        Ok(Self(digest))
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256Digest({self})")
    }
}

impl FromStr for Sha256Digest {
    type Err = Sha256DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_hex(text.strip_prefix("sha256:").ok_or(Sha256DigestError)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_parsed_back() {
        let digest = Sha256Digest::of(b"kitbag");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        let hex = digest.hex();
        for wrong in [&*hex, "sha256:", "sha512:ab", &format!("sha256:{}", hex.to_uppercase())] {
            assert_eq!(wrong.parse::<Sha256Digest>(), Err(Sha256DigestError), "{wrong}");
        }
    }
}
