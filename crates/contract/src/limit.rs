//! What a call may use up.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use kitbag_base::ByteSize;

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
    use super::*;

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
