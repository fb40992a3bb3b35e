//! The result of `tools/list`.
//!
//! Source: Model Context Protocol 2025-11-25, schema, `Tool`.

use serde_json::{Value, json};

use super::note::Note;
use super::root;
use super::tool_info::ToolInfo;

/// Everything a tool says of itself has a place here, and its schemas stay as
/// they are.
pub(super) fn define(tool: &ToolInfo<'_>) -> (Value, Vec<Note>) {
    let mut notes = Vec::new();
    let mut value = json!({ "name": tool.name });
    if let Some(title) = tool.title {
        value["title"] = title.into();
    }
    if let Some(description) = tool.description {
        value["description"] = description.into();
    }
    let mut input = root::typed(tool.input_schema);
    // The only one that clients take, also of several.
    input.insert("type".into(), "object".into());
    value["inputSchema"] = input.into();
    if let Some(schema) = tool.output_schema {
        match schema["type"] == "object" {
            true => value["outputSchema"] = schema.clone(),
            // A client would refuse the whole list.
            false => notes.push(Note::new(
                "",
                "goes out without the output schema beside it, which has to be that of an object",
            )),
        }
    }
    value["annotations"] = json!(tool.annotations);
    (value, notes)
}
