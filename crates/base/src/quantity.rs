//! Sizes, lengths of time and numbers, as people write them for limits.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::shown;

/// A number of bytes, read and written as `64 MiB`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(u64);

/// A text is not a limit: neither a size nor a duration nor a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseLimitError {
    /// The text is not a number of bytes.
    #[error("`{}` is not a size; write a number and a unit, such as `64MiB`", shown(.0))]
    Size(String),
    /// The text is not a length of time.
    #[error("`{}` is not a duration; write a number and a unit, such as `30s` or `500ms`", shown(.0))]
    Duration(String),
    /// The text is not a number of requests.
    #[error("`{}` is not a number of requests; write a positive integer, such as `50`", shown(.0))]
    Requests(String),
    /// The text is not a number of calls.
    #[error("`{}` is not a number of calls; write a positive integer, such as `20`", shown(.0))]
    ToolCalls(String),
    /// The text is not a number of instructions.
    #[error("`{}` is not a budget of fuel; write a positive integer, such as `1000000`", shown(.0))]
    Fuel(String),
}

/// Reads a length of time such as `30s`, `500ms` or `1m 30s`.
///
/// # Errors
///
/// [`ParseLimitError::Duration`] for anything else, and for zero: a call that
/// may take no time can only fail.
pub fn parse_duration(text: &str) -> Result<Duration, ParseLimitError> {
    humantime::parse_duration(text)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| ParseLimitError::Duration(text.to_owned()))
}

/// Writes a length of time so that [`parse_duration`] reads it back: `1m 30s`.
pub fn format_duration(duration: Duration) -> impl fmt::Display {
    humantime::format_duration(duration)
}

/// Reads a number of requests such as `50`.
///
/// # Errors
///
/// [`ParseLimitError::Requests`] for anything else, and for zero: a tool that may make no
/// request needs no grant of them.
pub fn parse_requests(text: &str) -> Result<u64, ParseLimitError> {
    positive(text).ok_or_else(|| ParseLimitError::Requests(text.to_owned()))
}

/// Reads a number of calls of other tools such as `20`.
///
/// # Errors
///
/// [`ParseLimitError::ToolCalls`] for anything else, and for zero: a tool that may call no
/// other one needs no grant of them.
pub fn parse_tool_calls(text: &str) -> Result<u64, ParseLimitError> {
    positive(text).ok_or_else(|| ParseLimitError::ToolCalls(text.to_owned()))
}

/// Reads a budget of fuel such as `1000000`.
///
/// # Errors
///
/// [`ParseLimitError::Fuel`] for anything else, and for zero: a call that may
/// run no instruction can only fail.
pub fn parse_fuel(text: &str) -> Result<u64, ParseLimitError> {
    positive(text).ok_or_else(|| ParseLimitError::Fuel(text.to_owned()))
}

fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

impl ByteSize {
    /// So many bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// So many times 1,048,576 bytes.
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number of bytes, or the largest `usize` where it does not fit.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = ParseLimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // `bytesize` does not know the unit that is written where no other
        // divides the size.
        let bytes = match text.strip_suffix(" bytes") {
            Some(number) => number.parse().ok(),
            // Without a unit it would be so many bytes, which is hardly ever meant.
            None if text.ends_with(|last: char| last.is_ascii_digit() || last == '.') => None,
            None => text.parse().ok().map(|size: bytesize::ByteSize| size.as_u64()),
        };
        bytes
            .filter(|bytes| *bytes > 0)
            .map(Self)
            .ok_or_else(|| ParseLimitError::Size(text.to_owned()))
    }
}

impl TryFrom<String> for ByteSize {
    type Error = ParseLimitError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> Self {
        size.to_string()
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Exact wherever a binary unit divides it, so that a limit reads the
        // way it was configured.
        const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match UNITS
            .iter()
            .find(|(_, shift)| self.0 >= 1 << shift && self.0.trailing_zeros() >= *shift)
        {
            Some((unit, shift)) => write!(f, "{} {unit}", self.0 >> shift),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_size_reads_as_it_is_written() {
        let check = |text: &str, expected: &str| {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), expected);
        };
        check("64MiB", "64 MiB");
        check("64 MiB", "64 MiB");
        check("1GiB", "1 GiB");
        check("1536KiB", "1536 KiB");
        check("1000B", "1000 bytes");
        check("1kb", "1000 bytes");
        check("1000 bytes", "1000 bytes");
    }

    proptest! {
        #[test]
        fn a_size_is_read_back_as_it_was_written(number in 1..u64::MAX, shift in 0..64u32) {
            let size = ByteSize::bytes((number >> shift).max(1));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            let unit = ByteSize::bytes(1 << shift);
            prop_assert_eq!(unit.to_string().parse(), Ok(unit));
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "MiB",
            "64 potatoes",
            "-1",
            "0",
            "1e99GiB",
            "0 bytes",
            "1 MiB bytes",
            " bytes",
            // Without a unit.
            "32",
            "1.5",
            "1.",
        ] {
            assert_eq!(text.parse::<ByteSize>(), Err(ParseLimitError::Size(text.into())));
        }
    }

    #[test]
    fn a_duration_reads_as_it_is_written() {
        for text in ["30s", "500ms", "1m 30s"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()).to_string(), text);
        }
        for text in ["", "30", "0s", "-1s", "soon"] {
            assert_eq!(parse_duration(text), Err(ParseLimitError::Duration(text.into())));
        }
    }

    #[test]
    fn fuel_is_a_positive_integer() {
        assert_eq!(parse_fuel("1"), Ok(1));
        assert_eq!(parse_fuel("18446744073709551615"), Ok(u64::MAX));
        for text in ["", "0", "-1", "1.5", "1e6", "18446744073709551616", "much"] {
            assert_eq!(parse_fuel(text), Err(ParseLimitError::Fuel(text.into())));
        }
    }

    #[test]
    fn a_number_of_requests_is_a_positive_integer() {
        assert_eq!(parse_requests("100"), Ok(100));
        for text in ["", "0", "-1", "1.5", "many"] {
            assert_eq!(parse_requests(text), Err(ParseLimitError::Requests(text.into())));
        }
    }

    #[test]
    fn a_number_of_calls_is_a_positive_integer() {
        assert_eq!(parse_tool_calls("200"), Ok(200));
        for text in ["", "0", "-1", "1.5", "many"] {
            assert_eq!(parse_tool_calls(text), Err(ParseLimitError::ToolCalls(text.into())));
        }
    }
}
