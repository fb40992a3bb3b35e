//! `functionDeclarations` of Gemini.
//!
//! Source: Gemini API v1beta, `FunctionDeclaration`.

use serde_json::{Value, json};

use super::note::Note;
use super::root;
use super::tool_info::ToolInfo;

/// Uses JSON Schema and not the older `parameters`, a dialect of OpenAPI.
pub(super) fn define(tool: &ToolInfo<'_>) -> (Value, Vec<Note>) {
    let value = json!({
        "name": tool.name,
        // A description is required.
        "description": tool.description.or(tool.title).unwrap_or(tool.name.as_str()),
        "parametersJsonSchema": root::object(tool.input_schema),
    });
    (value, Vec::new())
}
