//! Removes keys that hosts and models add to the arguments and that are not in the schema.

use std::collections::BTreeSet;

use kitbag_base::json::pointer;
use kitbag_base::text::nearest;
use serde_json::{Map, Value};

use super::coercion::Coercion;
use super::views::Views;
use crate::types::Types;

/// Keys that hosts add to every call: n8n adds the first four, agents the others.
const ADDED: [&str; 7] =
    ["toolCallId", "sessionId", "action", "chatInput", "explanation", "tool_call_id", "session_id"];

/// Removes forbidden keys that have no effect: keys that hosts add, and all others if none may be a
/// misspelled argument and no required argument is missing.
///
/// Keeps keys for which any schema of the same object has a property.
pub(super) fn remove_unknown(
    schema: &Value,
    views: &Views<'_>,
    object: &mut Map<String, Value>,
    coercions: &mut Vec<Coercion>,
) {
    let about = views.of(schema, Types::OBJECT);
    let is_closed = ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .any(|keyword| about.iter().any(|view| view.get(*keyword) == Some(&Value::Bool(false))));
    // The meaning of key patterns is not known here.
    let has_patterns = about.iter().any(|view| view.get("patternProperties").is_some());
    let declared = views.declared(schema);
    if !is_closed || has_patterns || !views.is_complete() {
        return;
    }
    let unknown: Vec<String> =
        object.keys().filter(|key| !declared.contains(&***key)).cloned().collect();
    let (added, others): (Vec<_>, Vec<_>) = unknown.into_iter().partition(|key| is_added(key));
    let is_near = |key: &String| nearest(key, declared.iter().copied()).is_some();
    // A key of a nested object may be misplaced.
    let inner = declared_within(schema);
    let is_misplaced = |key: &String| inner.contains(&**key);
    let has_default =
        |key: &str| about.iter().any(|view| view["properties"][key].get("default").is_some());
    let required = about.iter().filter_map(|view| view.get("required")?.as_array());
    let mut required = required.flatten().filter_map(Value::as_str);
    let is_complete = required.all(|key| object.contains_key(key) || has_default(key));
    let mut dropped = added;
    if is_complete && !others.iter().any(|key| is_near(key) || is_misplaced(key)) {
        dropped.extend(others);
    }
    for key in dropped {
        object.shift_remove(&key);
        coercions.push(Coercion { pointer: pointer(&key), change: "unknown, dropped" });
    }
}

/// Returns true if hosts add a key. Keys that begin with `_` never belong to a tool.
fn is_added(key: &str) -> bool {
    key.starts_with('_') || ADDED.contains(&key)
}

/// Returns the keys for which any part of a schema has a property.
fn declared_within(schema: &Value) -> BTreeSet<&str> {
    let mut declared = BTreeSet::new();
    let mut waiting = vec![schema];
    while let Some(schema) = waiting.pop() {
        match schema {
            Value::Array(schemas) => waiting.extend(schemas),
            Value::Object(rules) => {
                let properties = rules.get("properties").and_then(Value::as_object);
                declared
                    .extend(properties.into_iter().flat_map(|it| it.keys().map(String::as_str)));
                waiting.extend(rules.values());
            }
            _ => {}
        }
    }
    declared
}
