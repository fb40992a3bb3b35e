//! `tools` of Anthropic's Messages API.
//!
//! The root of a schema must be an object without `oneOf`, `anyOf` and `allOf`, and its properties
//! must have plain names; one invalid tool makes the whole request fail.

use serde_json::{Map, Value, json};

use super::note::Note;
use super::root;
use super::tool_info::ToolInfo;
use kitbag_base::json::pointer;

/// Keywords that are not allowed at the root.
const FORBIDDEN: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The longest name of a property.
const NAME_BYTES: usize = 64;

pub(super) fn define(tool: &ToolInfo<'_>) -> (Value, Vec<Note>) {
    let mut notes = Vec::new();
    let mut schema = root::object_without(tool.input_schema, &FORBIDDEN, &mut notes);
    check_names(&mut schema, &mut notes);
    let mut value = json!({ "name": tool.name });
    if let Some(description) = tool.description {
        value["description"] = description.into();
    }
    value["input_schema"] = schema.into();
    (value, notes)
}

/// Removes optional properties whose names are not accepted.
fn check_names(schema: &mut Map<String, Value>, notes: &mut Vec<Note>) {
    let required: Vec<_> = root::required(schema).map(str::to_owned).collect();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    properties.retain(|name, _| {
        let is_required = required.contains(name);
        let is_kept = is_name(name) || is_required;
        if !is_name(name) {
            let what = match is_required {
                true => {
                    "has a name that this interface refuses; it is required, so the tool must \
                     rename it"
                }
                false => "has a name that this interface refuses, and is omitted",
            };
            notes.push(Note::new(format!("/properties{}", pointer(name)), what));
        }
        is_kept
    });
}

fn is_name(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}
