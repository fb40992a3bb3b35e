//! The input of a definition.

use kitbag_contract::{Annotations, ToolName};
use serde_json::Value;

/// The input of a tool's definition.
#[derive(Clone, Copy, Debug)]
pub struct ToolInfo<'a> {
    /// The name for calls, which is valid in every format.
    pub name: &'a ToolName,
    /// A display name.
    pub title: Option<&'a str>,
    /// The purpose of the tool, for the model.
    pub description: Option<&'a str>,
    /// The JSON Schema of the arguments, which must be valid.
    pub input_schema: &'a Value,
    /// The JSON Schema of the content, if the content is JSON.
    pub output_schema: Option<&'a Value>,
    /// Hints for a client.
    pub annotations: &'a Annotations,
}
