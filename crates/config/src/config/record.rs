//! The record of a tool that a person agreed to.

use kitbag_base::ContentDigest;
use serde::Serialize;

use crate::layers::origin::Origin;

/// The record of a tool in a lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockedTool {
    /// The tool's version, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The origin of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The digest of the bytes of its component.
    pub component: ContentDigest,
    /// The digest of the tool's own description. `None`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<ContentDigest>,
    /// The digest of its schemas. `None`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<ContentDigest>,
    /// The requested grants, a line for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requested: Vec<String>,
    /// The imports of the component.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// The manifest that the tool was added with. `None`: it was added without a manifest, or by a
    /// version of kitbag that did not record it.
    #[serde(skip)]
    pub manifest: Option<LockedManifest>,
    /// The artifact or URL that the component was downloaded from. `None`: it was a file.
    #[serde(skip)]
    pub download: Option<LockedDownload>,
}

/// The record of a download.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockedDownload {
    /// The digest of the artifact's manifest, or of the component at a URL: `sha256:…`.
    pub digest: String,
    /// The signer. `None`: it is unsigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

/// The record of the manifest that a tool was added with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockedManifest {
    /// The name of its file.
    pub file: String,
    /// The BLAKE3 digest of its content.
    pub digest: ContentDigest,
    /// The version of the tool, from the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The author, from the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its requested grants and its settings, a line for each: `http: "https://a.example"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
}

/// The record of a tool, and its place in the lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The record.
    pub tool: LockedTool,
    /// The place of the component's digest.
    pub place: Origin,
}
