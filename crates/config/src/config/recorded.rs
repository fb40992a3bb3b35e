//! What was recorded of a tool when a person agreed to it.

use kitbag_contract::ContentDigest;
use serde::Serialize;

use crate::origin::Origin;

/// What was recorded of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockedTool {
    /// Its version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where its component came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The digest of the bytes of its component.
    pub component: ContentDigest,
    /// The digest of what it says of itself. `None`: it said nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<ContentDigest>,
    /// The digest of its schemas. `None`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<ContentDigest>,
    /// What it would like to be granted, a line for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<String>,
    /// What it imports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
}

/// What was recorded of a tool, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What was recorded.
    pub tool: LockedTool,
    /// Where the digest of its component stands.
    pub place: Origin,
}
