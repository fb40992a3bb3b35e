//! Limits on the resources of a call.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use kitbag_base::ByteSize;

/// The bytes of a guest's standard output, and of its standard error, that are kept. Further output
/// is counted and dropped.
pub const STDIO_BYTES: usize = 64 << 10;

/// The default memory limit of a server.
pub const SERVER_MEMORY: ByteSize = ByteSize::mib(2048);

/// The lowest memory limit of a server: one call of the default size fits.
pub const LEAST_SERVER_MEMORY: ByteSize = ByteSize::mib(384);

/// The default time after which an idle session of a server ends.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);

/// The amount that creating a file, directory or link adds to [`Limits::written`]: an inode and,
/// with its name, one or two blocks of the disk.
pub const ENTRY_BYTES: u64 = 4 << 10;

/// Limits on the resources of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of all instances of the call. Default 64 MiB.
    pub memory: ByteSize,
    /// Time from the start of the call to its end, including host calls. Default 30 s.
    pub time: Duration,
    /// The size of the answer: content, or message and trace. Default 1 MiB.
    pub output: ByteSize,
    /// The amount written to files: every byte, the growth of files, and [`ENTRY_BYTES`] for each
    /// file, directory or link that may be created. Default 1 GiB.
    pub written: ByteSize,
    /// HTTP requests, including each hop of a redirect. Default 50.
    pub requests: u64,
    /// Calls of other tools. Default 20.
    pub tool_calls: u64,
    /// WebAssembly instructions. The count is the same on every machine. Default `None`: not
    /// counted.
    pub fuel: Option<u64>,
    /// Time to compile the tool's component, if the call needs it. Not part of
    /// [`time`](Self::time). Default 1 min.
    pub compile: Duration,
}

/// A limit that a call exceeded.
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
    /// Random bytes that the guest requests in one host call.
    Random,
    /// Data that the guest passes to the host in one call.
    HostData,
    /// Core instances, memories or tables of one component.
    Instances,
    /// Bytes that the guest writes to files: [`Limits::written`].
    Written,
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

impl LimitKind {
    /// Tells the caller how to stay below the limit.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Memory => "give it less data, or a part of it",
            Self::Time | Self::Fuel => "request less, or a part of it",
            Self::Arguments => "give fewer or shorter ones",
            Self::Stack => "give arguments or data with less nesting",
            Self::Table | Self::Handles | Self::Random | Self::HostData | Self::Instances => {
                "request less at once"
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
    use super::*;

    #[test]
    fn fuel_is_off_by_default() {
        assert_eq!(Limits::default().fuel, None);
    }

    #[test]
    fn limits_are_displayed_as_they_are_sent() {
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
