//! The bearer token of the HTTP server.

use std::fmt;
use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A bearer token (RFC 6750). Only its digest is kept.
#[derive(Clone)]
pub struct Token([u8; 32]);

/// The reason why a token is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is so short that it could be guessed.
    #[error("a token must have at least {least} characters; this one has {found}")]
    Short {
        /// Required length in bytes.
        least: usize,
        /// Actual length in bytes.
        found: usize,
    },
    /// The token cannot be sent in a header.
    #[error("a token must be printable ASCII without spaces")]
    Unprintable,
}

/// Minimum length of a token in bytes.
const LEAST_BYTES: usize = 16;

impl Token {
    /// Creates a token from text, without surrounding white space.
    ///
    /// # Errors
    ///
    /// [`TokenError`] if the token is too short or cannot be sent.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.len() < LEAST_BYTES {
            return Err(TokenError::Short { least: LEAST_BYTES, found: text.len() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Unprintable);
        }
        Ok(Self(Sha256::digest(text).into()))
    }

    /// Generates a token of 256 random bits, and returns its text as well.
    ///
    /// # Errors
    ///
    /// If the system cannot provide random bytes.
    pub fn random() -> io::Result<(Self, String)> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let text = BASE64_URL_SAFE_NO_PAD.encode(bytes);
        Ok((Self(Sha256::digest(&text).into()), text))
    }

    /// Returns the SHA-256 of the token. A digest without salt is safe for a token of
    /// [`random`](Self::random): 256 random bits can be neither guessed nor listed.
    pub fn sha256(&self) -> [u8; 32] {
        self.0
    }

    /// Creates the token that a client has sent, in any form.
    pub(crate) fn shown(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Returns whether this is the token with a digest. The comparison takes constant time.
    pub(crate) fn is(&self, sha256: &[u8; 32]) -> bool {
        self.0.ct_eq(sha256).into()
    }

    pub(crate) fn principal(&self) -> String {
        let digest = Sha256::digest(self.0);
        format!("http:{}", BASE64_URL_SAFE_NO_PAD.encode(&digest[..16]))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_matches_only_itself() {
        let token = Token::new(" correct-horse-battery \n").unwrap();
        let is = |token: &Token, shown: &[u8]| Token::shown(shown).is(&token.sha256());
        assert!(is(&token, b"correct-horse-battery"));
        for other in
            ["", "correct-horse-batterx", "correct-horse-battery2", "Correct-horse-battery"]
        {
            assert!(!is(&token, other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
        let (random, text) = Token::random().unwrap();
        assert!(is(&random, text.as_bytes()));
        assert_ne!(Token::random().unwrap().1, text);
    }

    #[test]
    fn short_and_unprintable_tokens_are_refused() {
        let short = TokenError::Short { least: 16, found: 7 };
        assert_eq!(Token::new("letmein").unwrap_err(), short);
        let unprintable = Token::new("a token with spaces in it").unwrap_err();
        assert_eq!(unprintable, TokenError::Unprintable);
    }
}
