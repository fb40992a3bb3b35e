//! What a call may use up.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::shown;

/// The largest arguments of a call, in bytes of JSON.
pub const ARGUMENTS_BYTES: usize = 1 << 20;

/// How deep arrays and objects may nest in the arguments of a call.
pub const ARGUMENTS_DEPTH: usize = 128;

/// How much of a guest's standard output, and of its standard error, is kept,
/// in bytes each. What is written beyond that is counted and dropped.
pub const STDIO_BYTES: usize = 64 << 10;

/// What a server may take altogether, where its configuration does not say.
pub const SERVER_MEMORY: ByteSize = ByteSize::mib(2048);

/// The least that a server can be given: one call of the default size fits.
pub const LEAST_SERVER_MEMORY: ByteSize = ByteSize::mib(384);

/// The time after which an unused session of a server ends, by default.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);

/// What creating a file, a directory or a link counts towards [`Limits::written`]: it
/// takes an inode and, with its name, a block or two of the disk.
pub const ENTRY_BYTES: u64 = 4 << 10;

/// What one call may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of all instances of the call together. Default 64 MiB.
    pub memory: ByteSize,
    /// From the start of the call to its end, host calls included. Default 30 s.
    pub time: Duration,
    /// What the tool answers: content, or message and trace. Default 1 MiB.
    pub output: ByteSize,
    /// What the tool writes to files: every byte, what a file grows by otherwise, and
    /// [`ENTRY_BYTES`] for each file, directory or link that it may create. Default
    /// 1 GiB.
    pub written: ByteSize,
    /// Requests over HTTP, with each hop of a redirect. Default 50.
    pub requests: u64,
    /// Calls of other tools. Default 20.
    pub tool_calls: u64,
    /// WebAssembly instructions, counted the same on every machine. Default
    /// `None`: they are not counted.
    pub fuel: Option<u64>,
    /// Compiling the tool's component, where that has to be done for the call. It does
    /// not count towards [`time`](Self::time). Default 1 min.
    pub compile: Duration,
}

/// A limit that a call ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// Linear memory, in bytes.
    Memory,
    /// Wall-clock time.
    Time,
    /// The size of the arguments, in bytes of JSON.
    Arguments,
    /// Recursion: the guest's stack.
    Stack,
    /// Elements of the guest's tables.
    Table,
    /// Handles and buffers that the host holds for the guest.
    Handles,
    /// WebAssembly instructions: the budget of [`Limits::fuel`].
    Fuel,
    /// Random bytes that the guest asks for at once.
    Random,
    /// What the guest passes to the host in one call.
    HostData,
    /// Core instances, memories or tables of one component.
    Instances,
    /// What the guest writes to files: [`Limits::written`].
    Written,
}

/// A number of bytes, read and written as `64 MiB`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(u64);

/// A text is no limit: neither a size nor a duration nor a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseLimitError {
    /// The text is no number of bytes.
    #[error("`{}` is not a size; write a number and a unit, such as `64MiB`", shown(.0))]
    Size(String),
    /// The text is no length of time.
    #[error("`{}` is not a duration; write a number and a unit, such as `30s` or `500ms`", shown(.0))]
    Duration(String),
    /// The text is no number of requests.
    #[error("`{}` is not a number of requests; write a positive integer, such as `50`", shown(.0))]
    Requests(String),
    /// The text is no number of calls.
    #[error("`{}` is not a number of calls; write a positive integer, such as `20`", shown(.0))]
    ToolCalls(String),
    /// The text is no number of instructions.
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

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: ByteSize::mib(64),
            time: Duration::from_secs(30),
            output: ByteSize::mib(1),
            written: ByteSize::mib(1024),
            requests: 50,
            tool_calls: 20,
            fuel: None,
            compile: Duration::from_secs(60),
        }
    }
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

impl LimitKind {
    /// The way to stay below the limit, for the caller.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Memory => "give it less data, or a part of it",
            Self::Time | Self::Fuel => "ask for less, or for a part",
            Self::Arguments => "give fewer or shorter ones",
            Self::Stack => "give arguments or data that nest less deep",
            Self::Table | Self::Handles | Self::Random | Self::HostData | Self::Instances => {
                "ask for less at once"
            }
            Self::Written => "write less in one call",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::Time => "time",
            Self::Arguments => "arguments",
            Self::Stack => "stack",
            Self::Table => "table",
            Self::Handles => "handles",
            Self::Fuel => "fuel",
            Self::Random => "random",
            Self::HostData => "host-data",
            Self::Instances => "instances",
            Self::Written => "written",
        })
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

    #[test]
    fn fuel_is_off_by_default() {
        assert_eq!(Limits::default().fuel, None);
    }

    #[test]
    fn a_limit_is_shown_as_it_is_sent() {
        let check = |kind: LimitKind, expected: &str| {
            assert_eq!(kind.to_string(), expected);
            assert_eq!(serde_json::to_value(kind).unwrap(), expected);
            assert_eq!(serde_json::from_value::<LimitKind>(expected.into()).unwrap(), kind);
        };
        check(LimitKind::Memory, "memory");
        check(LimitKind::Time, "time");
        check(LimitKind::Arguments, "arguments");
        check(LimitKind::Stack, "stack");
        check(LimitKind::Table, "table");
        check(LimitKind::Handles, "handles");
        check(LimitKind::Fuel, "fuel");
        check(LimitKind::Random, "random");
        check(LimitKind::HostData, "host-data");
        check(LimitKind::Instances, "instances");
        check(LimitKind::Written, "written");
    }
}
