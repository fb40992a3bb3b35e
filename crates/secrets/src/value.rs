//! The value of a secret.

use kitbag_policy::Placement;
use zeroize::Zeroizing;

/// A secret value: a token, a password, an API key.
///
/// Wiped when dropped. Has neither `Debug` nor `Display`: only [`reveal`](Self::reveal) returns the
/// text.
#[derive(Clone)]
pub struct SecretValue(Zeroizing<String>);

/// Why a string is not a valid secret value. It does not contain the string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The value is too short to be distinguished from ordinary text.
    #[error(
        "the value has {bytes} bytes; a secret must have at least {} bytes to be distinguishable \
         from ordinary text",
        SecretValue::LEAST_BYTES
    )]
    TooShort {
        /// The length in bytes.
        bytes: usize,
    },
    /// The value is longer than a request header.
    #[error("the value has more than {} bytes", SecretValue::MOST_BYTES)]
    TooLong,
    /// It is not UTF-8.
    #[error("the value is not UTF-8 text")]
    NotText,
    /// The value has a line ending or another control character, which headers cannot contain.
    #[error("the value has a line end or another control character; a secret is one line")]
    ControlCharacter,
    /// A user and password is required, but the value has no `:`.
    #[error("as `basic`, the value must be `USER:PASSWORD`, but it has no `:`; or name the user")]
    NoPair,
    /// The password of a pair is too short.
    #[error(
        "the password has {bytes} bytes; it must have at least {} to be distinguishable from \
         ordinary text",
        SecretValue::LEAST_BYTES
    )]
    ShortPassword {
        /// The length in bytes.
        bytes: usize,
    },
}

impl SecretValue {
    /// The minimum length of a value, in bytes.
    pub const LEAST_BYTES: usize = 8;

    /// The maximum length of a value, in bytes.
    pub const MOST_BYTES: usize = 8 * 1024;

    /// Creates a value. Removes one trailing line ending.
    ///
    /// # Errors
    ///
    /// [`ValueError`] if the bytes are not a valid value. The bytes are wiped.
    pub fn new(bytes: Vec<u8>) -> Result<Self, ValueError> {
        let bytes = Zeroizing::new(bytes);
        let text = str::from_utf8(&bytes).map_err(|_| ValueError::NotText)?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        match text.len() {
            bytes @ 0..Self::LEAST_BYTES => Err(ValueError::TooShort { bytes }),
            _ if text.len() > Self::MOST_BYTES => Err(ValueError::TooLong),
            _ if text.chars().any(char::is_control) => Err(ValueError::ControlCharacter),
            _ => Ok(Self(Zeroizing::new(text.to_owned()))),
        }
    }

    /// Checks that the value can be added to a request in this way: the password of a user and
    /// password must be a valid value itself.
    ///
    /// # Errors
    ///
    /// [`ValueError`] if it cannot be added.
    pub fn check_for(&self, placement: &Placement) -> Result<(), ValueError> {
        let Placement::Basic { user: None } = placement else { return Ok(()) };
        match self.password() {
            None => Err(ValueError::NoPair),
            Some(password) if password.len() < Self::LEAST_BYTES => {
                Err(ValueError::ShortPassword { bytes: password.len() })
            }
            Some(_) => Ok(()),
        }
    }

    /// Returns the password of a user and password.
    pub(crate) fn password(&self) -> Option<&str> {
        self.0.split_once(':').map(|(_, password)| password)
    }

    /// Returns the secret text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_one_line_of_eight_bytes_or_more() {
        let check = |bytes: &[u8], expected: Result<&str, ValueError>| {
            let value = SecretValue::new(bytes.to_vec());
            let value = value.as_ref().map(SecretValue::reveal).map_err(|error| *error);
            assert_eq!(value, expected);
        };
        check(b"12345678", Ok("12345678"));
        check(b"12345678\n", Ok("12345678"));
        check(b"12345678\r\n", Ok("12345678"));
        check("pässwor".as_bytes(), Ok("pässwor"));
        check(b"1234567\n", Err(ValueError::TooShort { bytes: 7 }));
        check(b"", Err(ValueError::TooShort { bytes: 0 }));
        check(b"12345678\n\n", Err(ValueError::ControlCharacter));
        check(b"1234\x005678", Err(ValueError::ControlCharacter));
        check(b"12345678\xff", Err(ValueError::NotText));
        check(&[b'x'; SecretValue::MOST_BYTES + 1], Err(ValueError::TooLong));
    }

    #[test]
    fn passwords_of_pairs_have_eight_bytes_or_more() {
        let check = |text: &str, placement: &Placement, expected: Result<(), ValueError>| {
            let value = SecretValue::new(text.into()).unwrap();
            assert_eq!(value.check_for(placement), expected, "{text}");
        };
        let pair = Placement::basic(None).unwrap();
        check("ada:password", &pair, Ok(()));
        check("ada:pass:word", &pair, Ok(()));
        check("ada.lovelace:1234567", &pair, Err(ValueError::ShortPassword { bytes: 7 }));
        check("ada.lovelace:", &pair, Err(ValueError::ShortPassword { bytes: 0 }));
        check("ada.lovelace", &pair, Err(ValueError::NoPair));
        check("ada.lovelace:1", &Placement::basic(Some("ada".into())).unwrap(), Ok(()));
        check("ada.lovelace:1", &Placement::Bearer, Ok(()));
    }
}
