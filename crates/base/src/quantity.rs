//! Sizes, durations and counts, as people write them for limits.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::shown;

/// A number of bytes, formatted as `64 MiB`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(u64);

/// The error for a string that is not a valid limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseLimitError {
    /// The string is not a size in bytes.
    #[error("`{}` is not a size; write a number and a unit, such as `64MiB`", shown(.0))]
    Size(String),
    /// The string is not a duration.
    #[error("`{}` is not a duration; write a number and a unit, such as `30s` or `500ms`", shown(.0))]
    Duration(String),
    /// The string is not a number of requests.
    #[error("`{}` is not a number of requests; write a positive integer, such as `50`", shown(.0))]
    Requests(String),
    /// The string is not a number of calls.
    #[error("`{}` is not a number of calls; write a positive integer, such as `20`", shown(.0))]
    ToolCalls(String),
    /// The string is not a number of instructions.
    #[error("`{}` is not a fuel budget; write a positive integer, such as `1000000`", shown(.0))]
    Fuel(String),
}

/// Parses a duration such as `30s`, `500ms` or `1m 30s`.
///
/// # Errors
///
/// [`ParseLimitError::Duration`] for other strings and for zero: a call with no time always fails.
pub fn parse_duration(text: &str) -> Result<Duration, ParseLimitError> {
    humantime::parse_duration(text)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| ParseLimitError::Duration(text.to_owned()))
}

/// Formats a duration so that [`parse_duration`] accepts it: `1m 30s`.
pub fn format_duration(duration: Duration) -> impl fmt::Display {
    humantime::format_duration(duration)
}

/// Parses a number of requests such as `50`.
///
/// # Errors
///
/// [`ParseLimitError::Requests`] for other strings and for zero: a tool without requests needs no
/// grant.
pub fn parse_requests(text: &str) -> Result<u64, ParseLimitError> {
    positive(text).ok_or_else(|| ParseLimitError::Requests(text.to_owned()))
}

/// Parses a number of calls of other tools such as `20`.
///
/// # Errors
///
/// [`ParseLimitError::ToolCalls`] for other strings and for zero: a tool without nested calls needs
/// no grant.
pub fn parse_tool_calls(text: &str) -> Result<u64, ParseLimitError> {
    positive(text).ok_or_else(|| ParseLimitError::ToolCalls(text.to_owned()))
}

/// Parses a fuel budget such as `1000000`.
///
/// # Errors
///
/// [`ParseLimitError::Fuel`] for other strings and for zero: a call without fuel always fails.
pub fn parse_fuel(text: &str) -> Result<u64, ParseLimitError> {
    positive(text).ok_or_else(|| ParseLimitError::Fuel(text.to_owned()))
}

fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

impl ByteSize {
    /// Creates a size from a number of bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Creates a size from a number of mebibytes (1,048,576 bytes).
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// Returns the number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the number of bytes, saturating at [`usize::MAX`].
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = ParseLimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // `bytesize` does not parse the unit `bytes`, which `Display` uses for odd sizes.
        let bytes = match text.strip_suffix(" bytes") {
            Some(number) => number.parse().ok(),
            // A number without a unit would mean bytes, which is rarely intended.
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
        // Exact if a binary unit divides the size, so that a limit is shown as it was configured.
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
    fn sizes_are_parsed() {
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
        fn formatted_sizes_are_parsed_back(number in 1..u64::MAX, shift in 0..64u32) {
            let size = ByteSize::bytes((number >> shift).max(1));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            let unit = ByteSize::bytes(1 << shift);
            prop_assert_eq!(unit.to_string().parse(), Ok(unit));
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
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
    fn durations_are_parsed_and_formatted() {
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
