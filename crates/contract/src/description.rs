//! What a tool says of itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Access;

/// What a tool's optional export `describe` answers.
///
/// All of it is untrusted text, and all of it yields to configuration. Keys
/// that this version does not know are ignored, so that a tool may be newer
/// than its host.
///
/// Contract: `wit/tool.wit`, world `described-tool`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The name the tool would like to be called by.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema for the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// A JSON Schema for the content, where that is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints about the tool's behaviour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// What the tool would like to be granted. A wish; never a grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<DesiredGrants>,
}

/// Hints about a tool's behaviour, by the names of the Model Context Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Talks to the world outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// What a tool would like to be granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredGrants {
    /// Directories, by the path under which the tool looks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filesystem: Vec<DesiredDirectory>,
}

/// A directory that a tool would like to be granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredDirectory {
    /// Where the tool looks for it.
    pub guest: String,
    /// What the tool does in there.
    #[serde(default)]
    pub mode: Access,
}
