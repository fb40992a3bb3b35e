//! `tools` of OpenAI's Chat Completions and Responses.

use serde_json::{Map, Value, json};

use super::note::Note;
use super::tool_info::ToolInfo;
use super::{root, strict};
use crate::keywords::each_schema;
use crate::types::Types;

/// Keywords that are not allowed at the root, in any mode.
const FORBIDDEN: [&str; 6] = ["allOf", "anyOf", "oneOf", "enum", "const", "not"];

pub(super) fn chat(tool: &ToolInfo<'_>) -> (Value, Vec<Note>) {
    let (function, notes) = function(tool);
    (json!({ "type": "function", "function": function }), notes)
}

/// Like [`chat`], without the nested object.
pub(super) fn responses(tool: &ToolInfo<'_>) -> (Value, Vec<Note>) {
    let (function, notes) = function(tool);
    let mut value = Map::new();
    value.insert("type".into(), "function".into());
    value.extend(function);
    (value.into(), notes)
}

fn function(tool: &ToolInfo<'_>) -> (Map<String, Value>, Vec<Note>) {
    let (schema, is_strict, notes) = parameters(tool.input_schema);
    let mut value = Map::new();
    value.insert("name".into(), tool.name.as_str().into());
    if let Some(description) = tool.description {
        value.insert("description".into(), description.into());
    }
    value.insert("parameters".into(), schema);
    // Explicit, since interfaces have different defaults.
    value.insert("strict".into(), is_strict.into());
    (value, notes)
}

/// Returns the schema and whether it is strict.
fn parameters(schema: &Value) -> (Value, bool, Vec<Note>) {
    match strict::strict(schema) {
        Ok((schema, notes)) => (schema, true, notes),
        Err(Note { pointer, what }) => {
            let what = format!("{what}; the tool is sent with `strict: false`");
            let mut notes = vec![Note { pointer, what }];
            let mut schema = root::object_without(schema, &FORBIDDEN, &mut notes).into();
            fill(&mut schema);
            (schema, false, notes)
        }
    }
}

/// Adds required keywords that have no effect: `properties` of the root, and `items` of every
/// array.
fn fill(schema: &mut Value) {
    if let Value::Object(rules) = schema {
        rules.entry("properties").or_insert_with(|| json!({}));
    }
    each_schema(schema, &mut |rules| {
        let is_array = Types::named(rules).is_some_and(|named| named.meet(Types::ARRAY));
        if is_array && !rules.contains_key("prefixItems") {
            rules.entry("items").or_insert_with(|| json!({}));
        }
    });
}
