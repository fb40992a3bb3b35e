//! The value of a secret.

use kitbag_policy::Placement;
use zeroize::Zeroizing;

/// What a secret is: a token, a password, a key of an interface.
///
/// It is wiped when it is dropped, and has neither `Debug` nor `Display`: only
/// [`reveal`](Self::reveal) gives the text.
#[derive(Clone)]
pub struct SecretValue(Zeroizing<String>);

/// Why a text is no value of a secret. The text is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// It is too short to be found again, and to be left out of ordinary text.
    #[error(
        "the value has {bytes} bytes; a secret has at least {} bytes, so that it can be told from \
         ordinary text",
        SecretValue::LEAST_BYTES
    )]
    TooShort {
        /// How long it is.
        bytes: usize,
    },
    /// It is longer than a header of a request.
    #[error("the value has more than {} bytes", SecretValue::MOST_BYTES)]
    TooLong,
    /// It is not UTF-8.
    #[error("the value is not UTF-8 text")]
    NotText,
    /// It has a line end or another control character, which no header holds.
    #[error("the value has a line end or another control character; a secret is one line")]
    ControlCharacter,
    /// It is to be a user and a password, and has no `:` between them.
    #[error("as `basic` the value is `USER:PASSWORD`, and it has no `:`; or name the user")]
    NoPair,
    /// The password of a pair is too short to be found by itself.
    #[error(
        "the password has {bytes} bytes; it has at least {}, so that it can be told from ordinary \
         text",
        SecretValue::LEAST_BYTES
    )]
    ShortPassword {
        /// How long it is.
        bytes: usize,
    },
}

impl SecretValue {
    /// The fewest bytes of a value.
    pub const LEAST_BYTES: usize = 8;

    /// The most bytes of a value.
    pub const MOST_BYTES: usize = 8 * 1024;

    /// A value as it was read: one line end at its end is left out.
    ///
    /// # Errors
    ///
    /// [`ValueError`], where it cannot be a value. The bytes are wiped.
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

    /// Whether it can be added to a request like this: of a user and a password the password
    /// is a value by itself.
    ///
    /// # Errors
    ///
    /// [`ValueError`], where it cannot.
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

    /// The password, where it is a user and a password.
    pub(crate) fn password(&self) -> Option<&str> {
        self.0.split_once(':').map(|(_, password)| password)
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line_of_at_least_eight_bytes() {
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
    fn the_password_of_a_pair_has_eight_bytes_too() {
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
