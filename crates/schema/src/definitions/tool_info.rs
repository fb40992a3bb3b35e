//! What a definition is made of.

use kitbag_contract::{Annotations, ToolName};
use serde_json::Value;

/// What a tool's definition is made of.
#[derive(Clone, Copy, Debug)]
pub struct ToolInfo<'a> {
    /// The name it is called by, which fits every format as it is.
    pub name: &'a ToolName,
    /// A display name.
    pub title: Option<&'a str>,
    /// What it does, for the model.
    pub description: Option<&'a str>,
    /// The JSON Schema of its arguments, a valid one.
    pub input_schema: &'a Value,
    /// The JSON Schema of its content, where that is JSON.
    pub output_schema: Option<&'a Value>,
    /// Hints for a client.
    pub annotations: &'a Annotations,
}
