//! The result of `tools/list`.
//!
//! Source: Model Context Protocol 2025-11-25, schema, `Tool`.

use serde_json::{Value, json};

use super::clients;
use super::note::Note;
use super::root;
use super::tool_info::ToolInfo;

/// Includes everything in a tool's description. Its schemas are unchanged except for parts that
/// clients refuse: these are removed from the input schema, and the output schema is omitted.
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
    // The only type that clients accept, even in a list.
    input.insert("type".into(), "object".into());
    let (input, left_out) = clients::accepted(&input.into());
    value["inputSchema"] = input;
    if !left_out.is_empty() {
        notes.push(Note::new(
            "",
            format!(
                "is served without {}, since many clients would refuse all tools; calls are \
                 checked with it",
                left_out.join(", ")
            ),
        ));
    }
    if let Some(schema) = tool.output_schema {
        // A client would refuse the whole list.
        let refused = match (schema["type"] == "object", clients::accepted(schema)) {
            (false, _) => "must be that of an object".to_owned(),
            (true, (accepted, left_out)) if left_out.is_empty() => {
                value["outputSchema"] = accepted;
                return finished(value, tool, notes);
            }
            (true, (_, left_out)) => {
                format!("many clients refuse because of {}", left_out.join(", "))
            }
        };
        let what = format!("is served without the output schema, which {refused}");
        notes.push(Note::new("", what));
    }
    finished(value, tool, notes)
}

fn finished(mut value: Value, tool: &ToolInfo<'_>, notes: Vec<Note>) -> (Value, Vec<Note>) {
    value["annotations"] = json!(tool.annotations);
    (value, notes)
}
