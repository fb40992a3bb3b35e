//! The result of `tools/list`.
//!
//! Source: Model Context Protocol 2025-11-25, schema, `Tool`.

use serde_json::{Value, json};

use super::clients;
use super::note::Note;
use super::root;
use super::tool_info::ToolInfo;

/// Everything a tool says of itself has a place here. Its schemas stay as they are, except for what
/// clients refuse: the input schema is served without it, and the output schema is left out.
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
    let (input, left_out) = clients::accepted(&input.into());
    value["inputSchema"] = input;
    if !left_out.is_empty() {
        notes.push(Note::new(
            "",
            format!(
                "goes out without {}, for which many clients refuse all tools; calls are checked \
                 with it",
                left_out.join(", ")
            ),
        ));
    }
    if let Some(schema) = tool.output_schema {
        // A client would refuse the whole list.
        let refused = match (schema["type"] == "object", clients::accepted(schema)) {
            (false, _) => "has to be that of an object".to_owned(),
            (true, (accepted, left_out)) if left_out.is_empty() => {
                value["outputSchema"] = accepted;
                return finished(value, tool, notes);
            }
            (true, (_, left_out)) => {
                format!("many clients refuse for {}", left_out.join(", "))
            }
        };
        let what = format!("goes out without the output schema, which {refused}");
        notes.push(Note::new("", what));
    }
    finished(value, tool, notes)
}

fn finished(mut value: Value, tool: &ToolInfo<'_>, notes: Vec<Note>) -> (Value, Vec<Note>) {
    value["annotations"] = json!(tool.annotations);
    (value, notes)
}
