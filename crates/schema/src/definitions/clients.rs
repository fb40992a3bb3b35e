//! Parts of a schema that common MCP clients refuse: many refuse all tools of a server because of
//! one schema.
//!
//! Sources: ajv 8, which compiles every output schema and reads patterns with the flag `u`, and the
//! zod schemas of the TypeScript SDK, whose properties are objects.

use kitbag_base::text::shown;
use serde_json::{Map, Value, json};

use super::reference::resolve;
use crate::keywords::{self, each_schema};

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Keywords with a number.
const NUMBERS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// Keywords with a whole number from 0.
const COUNTS: [&str; 8] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
];

/// Returns a schema that clients accept, and the omitted parts, such as `` `pattern` (`(?i)x`) ``.
/// The result accepts every value that the original accepts.
pub(super) fn accepted(schema: &Value) -> (Value, Vec<String>) {
    let (mut accepted, mut left_out) = (schema.clone(), Vec::new());
    each_schema(&mut accepted, &mut |rules| repair(schema, rules, &mut left_out));
    (accepted, left_out)
}

fn repair(root: &Value, rules: &mut Map<String, Value>, left_out: &mut Vec<String>) {
    let has_type = rules.contains_key("type");
    let is_root = root.as_object().is_some_and(|root| root == rules);
    let mut removed = Vec::new();
    for (name, rule) in rules.iter() {
        let is_refused = match &**name {
            "$ref" => !rule.as_str().is_some_and(|reference| {
                let target = resolve(root, reference);
                target.is_some_and(|(_, target)| target.is_object() || target.is_boolean())
            }),
            // The id of a nested schema changes the base of references.
            "$id" => !is_root || !rule.is_string(),
            // The id of draft 4.
            "id" => true,
            "$schema" | "format" => !rule.is_string(),
            "type" => !is_type(rule),
            "enum" => rule.as_array().is_none_or(Vec::is_empty),
            "pattern" => !rule.as_str().is_some_and(super::ecma::is_pattern),
            // OpenAPI's keyword.
            "nullable" => !has_type || !rule.is_boolean(),
            "required" => !rule.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
            "uniqueItems" => !rule.is_boolean(),
            name if NUMBERS.contains(&name) => !rule.is_number(),
            name if COUNTS.contains(&name) => !rule.is_u64(),
            name => !keywords::is_well_formed(name, rule),
        };
        if is_refused {
            removed.push(name.clone());
        }
    }
    for name in removed {
        let rule = rules.shift_remove(&name).unwrap_or_default();
        left_out.push(described(&name, &rule));
    }
    if let Some(Value::Object(patterns)) = rules.get_mut("patternProperties") {
        let unreadable: Vec<_> =
            patterns.keys().filter(|key| !super::ecma::is_pattern(key)).cloned().collect();
        for key in &unreadable {
            patterns.shift_remove(key);
            left_out.push(described("patternProperties", &json!(key)));
        }
        // Removing these would accept fewer keys.
        if !unreadable.is_empty() {
            rules.shift_remove("additionalProperties");
            rules.shift_remove("unevaluatedProperties");
        }
    }
    if let Some(Value::Object(properties)) = rules.get_mut("properties") {
        for property in properties.values_mut() {
            match property {
                Value::Bool(true) => *property = json!({}),
                Value::Bool(false) => *property = json!({ "not": {} }),
                _ => {}
            }
        }
    }
}

fn is_type(rule: &Value) -> bool {
    let is_known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match rule {
        Value::Array(names) => !names.is_empty() && names.iter().all(is_known),
        name => is_known(name),
    }
}

fn described(name: &str, rule: &Value) -> String {
    let rule = rule.as_str().map_or_else(|| rule.to_string(), str::to_owned);
    format!("`{name}` (`{}`)", shown(&rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn served_schemas_match_the_cases() {
        let cases: Value = serde_json::from_str(include_str!("../../cases/clients.json")).unwrap();
        let mut differences = String::new();
        for case in cases.as_array().unwrap() {
            let (served, left_out) = accepted(&case["schema"]);
            let found = json!({ "schema": case["schema"], "served": served, "left_out": left_out });
            if found != *case {
                differences += &format!("expected: {case}\nfound:    {found}\n\n");
            }
        }
        assert!(differences.is_empty(), "{differences}");
    }
}
