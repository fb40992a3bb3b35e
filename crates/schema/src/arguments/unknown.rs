//! Keys that hosts and models add to the arguments, and that the schema does not know.

use std::collections::BTreeSet;

use kitbag_base::json::pointer;
use kitbag_base::text::nearest;
use serde_json::{Map, Value};

use super::coercion::Coercion;
use super::views::Views;
use crate::types::Types;

/// Keys that hosts add to every call: n8n the first four, and agents the others.
const ADDED: [&str; 7] =
    ["toolCallId", "sessionId", "action", "chatInput", "explanation", "tool_call_id", "session_id"];

/// Removes the keys that a schema forbids and that are of no use: those that hosts add, and all
/// others if none may be a misspelled argument and no required one is missing.
///
/// A key that the schema has a property for, wherever that is about the same object, stays.
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
    // What a pattern of keys is for is not known here.
    let has_patterns = about.iter().any(|view| view.get("patternProperties").is_some());
    let declared = views.declared(schema);
    if !is_closed || has_patterns || !views.is_complete() {
        return;
    }
    let unknown: Vec<String> =
        object.keys().filter(|key| !declared.contains(&***key)).cloned().collect();
    let (added, others): (Vec<_>, Vec<_>) = unknown.into_iter().partition(|key| is_added(key));
    let is_near = |key: &String| nearest(key, declared.iter().copied()).is_some();
    // A key of an argument's own object has its place there.
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

/// Tells whether hosts add a key. Those that begin with `_` are never a tool's.
fn is_added(key: &str) -> bool {
    key.starts_with('_') || ADDED.contains(&key)
}

/// The keys that any part of a schema has properties for.
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
