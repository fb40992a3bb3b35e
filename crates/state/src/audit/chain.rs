//! The chain: the position of a line and its link to the previous line.

use std::fmt::{self, Write as _};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// The hash of a line, which is in the next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChainHash(blake3::Hash);

/// The end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainEnd {
    /// The number of lines, which is the number of the next line.
    pub(crate) lines: u64,
    /// The hash of the last line.
    pub(crate) hash: ChainHash,
}

/// The start of every line.
#[derive(Deserialize)]
pub(crate) struct Link {
    /// The number of the line, from 0.
    n: u64,
    /// The hash of the previous line.
    prev: ChainHash,
    /// The kind of event.
    event: String,
    /// For an event `torn`: its bytes.
    #[serde(default)]
    bytes: u64,
}

impl ChainHash {
    pub(crate) fn start() -> Self {
        Self(blake3::Hash::from_bytes([0; 32]))
    }

    /// Returns the hash of a line without its line ending.
    pub(crate) fn of(line: &[u8]) -> Self {
        Self(blake3::hash(line))
    }
}

impl ChainEnd {
    /// Returns the start of a log.
    pub(crate) fn start() -> Self {
        Self { lines: 0, hash: ChainHash::start() }
    }

    /// Appends a line for a record, which is a non-empty JSON object.
    pub(crate) fn push(&mut self, text: &mut String, time: SystemTime, record: &str) {
        let Self { lines, hash } = *self;
        let start = text.len();
        let time = humantime::format_rfc3339_micros(time);
        let rest = record.strip_prefix('{').unwrap_or(record);
        let _ = write!(text, "{}{time}\",{rest}", start_of(lines, hash));
        self.lines += 1;
        self.hash = ChainHash::of(&text.as_bytes()[start..]);
        text.push('\n');
    }

    /// Checks and adds the next line. `torn` are the bytes between the last line of the chain and
    /// this one, if a process was stopped while it wrote.
    ///
    /// # Errors
    ///
    /// The problem with the line.
    pub(crate) fn follow(&mut self, line: &[u8], torn: Option<&[u8]>) -> Result<(), NotNext> {
        let link: Link = serde_json::from_slice(line).map_err(|_| NotNext::NotALine)?;
        let before = match torn {
            None => self.hash,
            Some(torn) if link.event == "torn" && link.bytes == torn.len() as u64 => {
                ChainHash::of(torn)
            }
            Some(_) => return Err(NotNext::Other),
        };
        if link.n > self.lines {
            return Err(NotNext::Missing { lines: link.n - self.lines });
        }
        if link.n < self.lines || link.prev != before {
            return Err(NotNext::Other);
        }
        self.lines += 1;
        self.hash = ChainHash::of(line);
        Ok(())
    }

    /// Returns true if an incomplete line can be the start of the next one, which a process did not
    /// finish. `torn` is as for [`follow`](Self::follow).
    pub(crate) fn is_begun_by(&self, text: &[u8], torn: Option<&[u8]>) -> bool {
        let prev = torn.map_or(self.hash, ChainHash::of);
        let start = start_of(self.lines, prev);
        let length = start.len().min(text.len());
        length > 0 && text[..length] == start.as_bytes()[..length]
    }

    /// Returns the end of the chain before a line, as the line declares it.
    pub(crate) fn before(line: &[u8]) -> Option<Self> {
        let Link { n, prev, .. } = serde_json::from_slice(line).ok()?;
        Some(Self { lines: n, hash: prev })
    }
}

/// Returns the start of a line, up to its time.
fn start_of(number: u64, prev: ChainHash) -> String {
    format!("{{\"n\":{number},\"prev\":\"{prev}\",\"time\":\"")
}

/// Why a line is not the next one of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotNext {
    /// The text is not a line of a log.
    NotALine,
    /// Lines before it are missing.
    Missing {
        /// The number of missing lines.
        lines: u64,
    },
    /// The line belongs after a different line.
    Other,
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl From<ChainHash> for String {
    fn from(hash: ChainHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for ChainHash {
    type Error = blake3::HexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        blake3::Hash::from_hex(text).map(Self)
    }
}
