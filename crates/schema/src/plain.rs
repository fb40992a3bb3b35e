//! Fast checks of simple schemas and values, without the library.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::types::Types;

/// Maximum number of steps of a fast check.
const PLAIN_STEPS: u64 = 1_000_000;

/// Returns true if a schema is certainly valid, because it uses only keywords that are checked
/// here. False if the library must decide.
pub(crate) fn is_plain_schema(schema: &Value) -> bool {
    /// Far below the limit for schemas.
    const KEYWORDS: usize = 1_000;
    is_plain(schema, &mut KEYWORDS.clone())
}

fn is_plain(schema: &Value, left: &mut usize) -> bool {
    let Value::Object(rules) = schema else { return false };
    let Some(rest) = left.checked_sub(rules.len() + 1) else { return false };
    *left = rest;
    rules.iter().all(|(keyword, rule)| match (&**keyword, rule) {
        ("type", Value::String(_)) => Types::named(rules) != Some(Types::NONE),
        ("properties", Value::Object(properties)) => {
            properties.values().all(|schema| is_plain(schema, left))
        }
        ("items", items) => is_plain(items, left),
        ("anyOf", Value::Array(branches)) => {
            !branches.is_empty() && branches.iter().all(|branch| is_plain(branch, left))
        }
        ("required", Value::Array(keys)) => {
            let names = keys.iter().map(Value::as_str).collect::<Option<BTreeSet<_>>>();
            names.is_some_and(|names| names.len() == keys.len())
        }
        ("additionalProperties", rule) => rule.is_boolean(),
        ("title" | "description", text) => text.is_string(),
        ("default", _) => true,
        _ => false,
    })
}

/// Returns true if a value certainly matches a schema. False if the library must decide.
///
/// The library first compiles the meta-schema, which takes several times as long as a whole call
/// without it. Configurations and most tools use only these keywords (JSON Schema 2020-12).
pub(crate) fn fits_plainly(schema: &Value, value: &Value) -> bool {
    fits_within(schema, value, &mut { PLAIN_STEPS })
}

/// Like [`fits_plainly`], with at most `left` steps.
fn fits_within(schema: &Value, value: &Value, left: &mut u64) -> bool {
    let Value::Object(rules) = schema else { return false };
    let property = |key: &str| rules.get("properties").and_then(|properties| properties.get(key));
    let mut spend = |steps: usize| {
        let rest = left.checked_sub(steps as u64);
        *left = rest.unwrap_or_default();
        rest.is_some()
    };
    let looked_at = |rule: &Value| match rule {
        Value::Array(rules) => rules.len(),
        Value::Object(rules) => rules.len(),
        _ => 1,
    };
    if !rules.values().all(|rule| spend(looked_at(rule))) {
        return false;
    }
    rules.iter().all(|(keyword, rule)| match (&**keyword, rule, value) {
        ("type", ..) => Types::named(rules).is_some_and(|named| named.meet(Types::of_value(value))),
        ("properties", Value::Object(properties), Value::Object(object)) => {
            let mut properties = properties.iter();
            properties.all(|(key, schema)| {
                object.get(key).is_none_or(|value| fits_within(schema, value, left))
            })
        }
        ("required", Value::Array(keys), Value::Object(object)) => {
            keys.iter().all(|key| key.as_str().is_some_and(|key| object.contains_key(key)))
        }
        ("additionalProperties", Value::Bool(false), Value::Object(object)) => {
            object.keys().all(|key| property(key).is_some())
        }
        ("items", Value::Object(_), Value::Array(elements)) => {
            elements.iter().all(|element| fits_within(rule, element, left))
        }
        ("enum", Value::Array(options), _) => options.contains(value),
        ("anyOf", Value::Array(branches), _) => {
            branches.iter().any(|branch| fits_within(branch, value, left))
        }
        // These do not restrict values of other types.
        ("properties", Value::Object(_), _)
        | ("required", Value::Array(_), _)
        | ("additionalProperties", Value::Bool(_), _)
        | ("items", Value::Object(_), _)
        | ("title" | "description" | "default", ..) => true,
        _ => false,
    })
}
