//! The audit log.

use kitbag_base::ByteSize;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::layers::origin::Sourced;

/// The audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// `true` logs calls.
    pub enable: Sourced<bool>,
    /// The time at which lines are written to disk.
    pub sync: Sourced<AuditSync>,
    /// The largest size of the log; the oldest lines are removed first.
    pub size: Sourced<ByteSize>,
    /// `true` logs arguments in full; `false` logs only their digest.
    pub arguments: Sourced<bool>,
    /// `true` refuses calls that cannot be logged.
    pub required: Sourced<bool>,
}

/// The time at which lines of the audit log are written to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum AuditSync {
    /// When the operating system writes them.
    None,
    /// Together, within 100 ms, after their calls were answered.
    Batch,
    /// Each line before its call is answered.
    Each,
}

impl AuditSync {
    /// Returns the value as it is written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Batch => "batch",
            Self::Each => "each",
        }
    }
}
