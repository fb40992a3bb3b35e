//! `functionDeclarations` of Gemini.
//!
//! Source: Gemini API v1beta, `FunctionDeclaration`.

use serde_json::{Value, json};

use super::{Note, description, root};
use crate::Tool;

/// The schema goes out as JSON Schema, not as the older `parameters`, which is
/// a dialect of OpenAPI.
pub(super) fn define(tool: &Tool) -> (Value, Vec<Note>) {
    let title = tool.title.as_ref().map(|title| &*title.value);
    let value = json!({
        "name": tool.name,
        // It must not be missing.
        "description": description(tool).or(title).unwrap_or(tool.name.as_str()),
        "parametersJsonSchema": root::object(&tool.input_schema.value),
    });
    (value, Vec::new())
}
