//! The audit log.

use kitbag_base::ByteSize;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::layers::origin::Sourced;

/// The audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Whether calls are logged.
    pub enable: Sourced<bool>,
    /// When lines are brought to the disk.
    pub sync: Sourced<AuditSync>,
    /// How large the log becomes; the oldest lines go.
    pub size: Sourced<ByteSize>,
    /// Whether arguments are logged as they are, and not by their digest alone.
    pub arguments: Sourced<bool>,
    /// Whether calls are refused while nothing can be logged.
    pub required: Sourced<bool>,
}

/// When lines of the audit log are brought to the disk.
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
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Batch => "batch",
            Self::Each => "each",
        }
    }
}
