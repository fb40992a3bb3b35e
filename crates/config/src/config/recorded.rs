//! What was recorded of a tool when a person agreed to it.

use kitbag_base::ContentDigest;
use serde::Serialize;

use crate::layers::origin::Origin;

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
    /// The manifest that it was added with. `None`: it was added without one, or by a version of
    /// kitbag that did not record it.
    #[serde(skip)]
    pub manifest: Option<LockedManifest>,
}

/// The record of the manifest that a tool was added with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockedManifest {
    /// The name of its file.
    pub file: String,
    /// The BLAKE3 digest of its content.
    pub digest: ContentDigest,
    /// The version that it gives the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The author that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its requested grants and its settings, a line for each: `http: "https://a.example"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
}

/// What was recorded of a tool, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What was recorded.
    pub tool: LockedTool,
    /// Where the digest of its component stands.
    pub place: Origin,
}
