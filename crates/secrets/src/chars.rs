//! The character sets of keys and tokens, and lengths of runs.

use serde::Deserialize;

/// A set of characters. `data/leaks.toml` lists the members of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Chars {
    Alnum,
    Upper,
    Lower,
    Hex,
    Digits,
    Word,
    Base64url,
    Base64,
    Any64,
    Dotted,
    Tilde,
    Path,
    Bearer,
    Value,
    Pem,
}

/// The number of bytes that are compared at once.
const AT_ONCE: usize = 32;

impl Chars {
    const SETS: [Self; 15] = [
        Self::Alnum,
        Self::Upper,
        Self::Lower,
        Self::Hex,
        Self::Digits,
        Self::Word,
        Self::Base64url,
        Self::Base64,
        Self::Any64,
        Self::Dotted,
        Self::Tilde,
        Self::Path,
        Self::Bearer,
        Self::Value,
        Self::Pem,
    ];

    /// The number of sets.
    pub(crate) const ALL: usize = Self::SETS.len();

    /// Returns true if a byte is in the set.
    #[inline(always)]
    pub(crate) const fn has(self, byte: u8) -> bool {
        let is_alnum = byte.is_ascii_alphanumeric();
        match self {
            Self::Alnum => is_alnum,
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Lower => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Digits => byte.is_ascii_digit(),
            Self::Word => is_alnum || byte == b'_',
            Self::Base64url => is_alnum || matches!(byte, b'_' | b'-'),
            Self::Base64 => is_alnum || matches!(byte, b'+' | b'/' | b'='),
            Self::Any64 => is_alnum || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-'),
            Self::Dotted => is_alnum || matches!(byte, b'_' | b'-' | b'.'),
            Self::Tilde => is_alnum || matches!(byte, b'_' | b'-' | b'.' | b'~'),
            Self::Path => is_alnum || matches!(byte, b'_' | b'-' | b'/' | b'@'),
            Self::Bearer => {
                is_alnum || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
            }
            Self::Value => {
                is_alnum
                    || matches!(
                        byte,
                        b'!' | b'#'
                            | b'$'
                            | b'%'
                            | b'*'
                            | b'+'
                            | b'-'
                            | b'.'
                            | b'/'
                            | b':'
                            | b'='
                            | b'?'
                            | b'@'
                            | b'^'
                            | b'_'
                            | b'|'
                            | b'~'
                    )
            }
            Self::Pem => {
                is_alnum
                    || matches!(
                        byte,
                        b'+' | b'/'
                            | b'='
                            | b' '
                            | b'\n'
                            | b'\r'
                            | b'\t'
                            | b'\\'
                            | b':'
                            | b','
                            | b'%'
                    )
            }
        }
    }

    /// Returns the length of the run of these characters at the start of `bytes`.
    #[inline]
    pub(crate) fn run(self, bytes: &[u8]) -> usize {
        let bit = 1 << self as u16;
        let is_in = |byte: &&u8| SETS[usize::from(**byte)] & bit != 0;
        // The start of a run, in case the run is short.
        let first = &bytes[..bytes.len().min(AT_ONCE)];
        let length = first.iter().take_while(is_in).count();
        if length < first.len() {
            return length;
        }
        let length = length + self.groups(&bytes[length..]) * AT_ONCE;
        length + bytes[length..].iter().take_while(is_in).count()
    }

    /// Returns the length of the run of these characters at the end of `bytes`, at most `most` + 1.
    /// Treats `=` as a delimiter, since it only ends base64.
    pub(crate) fn run_back(self, bytes: &[u8], most: usize) -> usize {
        let last = bytes.iter().rev().take(most + 1);
        last.take_while(|byte| self.has(**byte) && **byte != b'=').count()
    }

    /// Returns the number of groups at the start of `bytes` that consist only of these characters.
    /// Each set has its own loop without a branch per byte, so that the compiler vectorizes it.
    fn groups(self, bytes: &[u8]) -> usize {
        fn of(bytes: &[u8], has: impl Fn(u8) -> bool) -> usize {
            let (groups, _) = bytes.as_chunks::<AT_ONCE>();
            let is_whole =
                |group: &&[u8; AT_ONCE]| group.iter().fold(true, |all, byte| all & has(*byte));
            groups.iter().take_while(is_whole).count()
        }
        match self {
            Self::Alnum => of(bytes, |byte| Self::Alnum.has(byte)),
            Self::Upper => of(bytes, |byte| Self::Upper.has(byte)),
            Self::Lower => of(bytes, |byte| Self::Lower.has(byte)),
            Self::Hex => of(bytes, |byte| Self::Hex.has(byte)),
            Self::Digits => of(bytes, |byte| Self::Digits.has(byte)),
            Self::Word => of(bytes, |byte| Self::Word.has(byte)),
            Self::Base64url => of(bytes, |byte| Self::Base64url.has(byte)),
            Self::Base64 => of(bytes, |byte| Self::Base64.has(byte)),
            Self::Any64 => of(bytes, |byte| Self::Any64.has(byte)),
            Self::Dotted => of(bytes, |byte| Self::Dotted.has(byte)),
            Self::Tilde => of(bytes, |byte| Self::Tilde.has(byte)),
            Self::Path => of(bytes, |byte| Self::Path.has(byte)),
            Self::Bearer => of(bytes, |byte| Self::Bearer.has(byte)),
            Self::Value => of(bytes, |byte| Self::Value.has(byte)),
            Self::Pem => of(bytes, |byte| Self::Pem.has(byte)),
        }
    }
}

/// The sets of each byte, one bit per set.
static SETS: [u16; 256] = {
    let mut of = [0; 256];
    let mut byte = 0;
    while byte < of.len() {
        let mut set = 0;
        while set < Chars::ALL {
            if Chars::SETS[set].has(byte as u8) {
                of[byte] |= 1 << Chars::SETS[set] as u16;
            }
            set += 1;
        }
        byte += 1;
    }
    of
};
