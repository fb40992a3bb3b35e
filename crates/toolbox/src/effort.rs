//! How much it takes to check a value against a schema, found out before it is done.
//!
//! A schema is the tool's word, and the library that checks against it stops at
//! nothing: with references a few lines ask for more evaluations than there is
//! time, or for such deep ones that the stack ends, and with it the process.

use std::fmt::Display;

use referencing::{Draft, Registry, RegistryBuilder, Resolved, Resolver, uri};
use serde_json::Value;

/// Under which address the library reads a schema that has none of its own.
const BASE: &str = "json-schema:///";

/// How many values there are in a schema at most. To read one in which each refers
/// to the next takes more than in proportion.
const SCHEMA_VALUES: u64 = 40_000;

/// How many schemas are evaluated one within the other at most. Arguments that are
/// as deep as they may be take four for each of their levels.
const LEVELS: usize = 512;

/// How many evaluations there are at most, and how many more for each value within
/// the one that is checked.
const STEPS: u64 = 100_000;
const STEPS_PER_VALUE: u64 = 64;

/// A schema whose evaluations can be counted.
pub(crate) struct Effort<'a>(Registry<'a>);

impl<'a> Effort<'a> {
    /// Reads a schema.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it: it is too large, or its addresses are none.
    pub(crate) fn new(schema: &'a Value) -> Result<Self, String> {
        if count(schema) > SCHEMA_VALUES {
            return Err(format!("it consists of more than {SCHEMA_VALUES} values"));
        }
        let registry = Registry::new()
            .draft(Draft::default().detect(schema))
            .add(BASE, schema)
            .and_then(RegistryBuilder::prepare)
            .map_err(said)?;
        Ok(Self(registry))
    }

    /// Makes sure that a value can be checked against the schema at a place in this
    /// one, the fragment of a URI.
    ///
    /// # Errors
    ///
    /// Says what would take too much.
    pub(crate) fn check(&self, fragment: &str, value: &Value) -> Result<(), String> {
        let base = uri::from_str(BASE).map_err(said)?;
        let found = self.0.resolver(base).lookup(&format!("#{fragment}")).map_err(said)?;
        let limit = STEPS.saturating_add(count(value).saturating_mul(STEPS_PER_VALUE));
        Counter { left: limit, limit, level: 0 }.found(found, value)
    }
}

/// A schema, and from where its references lead.
#[derive(Clone, Copy)]
struct At<'a, 'r> {
    schema: &'r Value,
    resolver: &'a Resolver<'r>,
    draft: Draft,
}

/// Goes through all that may be evaluated: every branch of a choice, whatever the
/// others say.
struct Counter {
    left: u64,
    limit: u64,
    level: usize,
}

impl Counter {
    fn schema(&mut self, at: At<'_, '_>, value: &Value) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            format!("to check this value against it takes more than {} steps", self.limit)
        })?;
        let Value::Object(rules) = at.schema else { return Ok(()) };
        if self.level == LEVELS {
            return Err(format!("more than {LEVELS} schemas apply one within the other"));
        }
        self.level += 1;
        let resolver = at.resolver.in_subresource(at.draft.create_resource_ref(at.schema));
        let resolver = resolver.map_err(said)?;
        // What these two apply to is found out by evaluating all the rest again.
        let again = ["unevaluatedItems", "unevaluatedProperties"];
        let times = if again.iter().any(|keyword| rules.contains_key(*keyword)) { 2 } else { 1 };
        for _ in 0..times {
            for rule in rules {
                self.rule(At { resolver: &resolver, ..at }, rule, value)?;
            }
        }
        self.level -= 1;
        Ok(())
    }

    fn rule(
        &mut self,
        at: At<'_, '_>,
        (keyword, rule): (&String, &Value),
        value: &Value,
    ) -> Result<(), String> {
        match (&**keyword, rule, value) {
            ("$ref" | "$dynamicRef", Value::String(reference), _) => {
                let found = at.resolver.lookup(reference).map_err(said)?;
                if keyword == "$dynamicRef" && found.contents().get("$dynamicAnchor").is_some() {
                    return Err(format!("`$dynamicRef` to `{reference}` may lead anywhere"));
                }
                self.found(found, value)
            }
            ("$recursiveRef", ..) => {
                self.found(at.resolver.lookup_recursive_ref().map_err(said)?, value)
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas), _) => {
                self.each(at, schemas.iter().map(|schema| (schema, value)))
            }
            ("not" | "if" | "then" | "else", schema, _) => self.each(at, [(schema, value)]),
            ("dependentSchemas" | "dependencies", Value::Object(schemas), _) => {
                self.each(at, schemas.values().map(|schema| (schema, value)))
            }
            ("properties", Value::Object(schemas), Value::Object(object)) => {
                let here = |(key, schema)| object.get(key).map(|value| (schema, value));
                self.each(at, schemas.iter().filter_map(here))
            }
            ("patternProperties", Value::Object(schemas), Value::Object(object)) => {
                let each = |schema| object.values().map(move |value| (schema, value));
                self.each(at, schemas.values().flat_map(each))
            }
            ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(object)) => {
                self.each(at, object.values().map(|value| (schema, value)))
            }
            // A name is a text, within which nothing is evaluated.
            ("propertyNames", schema, Value::Object(object)) => {
                self.each(at, object.values().map(|_| (schema, &Value::Null)))
            }
            ("prefixItems" | "items", Value::Array(schemas), Value::Array(elements)) => {
                self.each(at, schemas.iter().zip(elements))
            }
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains",
                schema,
                Value::Array(elements),
            ) => self.each(at, elements.iter().map(|value| (schema, value))),
            _ => Ok(()),
        }
    }

    fn found(&mut self, found: Resolved<'_>, value: &Value) -> Result<(), String> {
        let (schema, resolver, draft) = found.into_inner();
        self.schema(At { schema, resolver: &resolver, draft }, value)
    }

    fn each<'r, 'v>(
        &mut self,
        at: At<'_, 'r>,
        pairs: impl IntoIterator<Item = (&'r Value, &'v Value)>,
    ) -> Result<(), String> {
        pairs.into_iter().try_for_each(|(schema, value)| self.schema(At { schema, ..at }, value))
    }
}

fn said(error: impl Display) -> String {
    error.to_string()
}

/// How many values a value consists of, itself among them.
fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn effort(schema: &Value, value: &Value) -> Result<(), String> {
        Effort::new(schema)?.check("", value)
    }

    #[track_caller]
    fn refused(schema: &Value, value: &Value, reason: &str) {
        let found = effort(schema, value).unwrap_err();
        assert!(found.contains(reason), "{found}");
    }

    /// Definitions of which each consists of what is made of a reference to the next.
    fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
        let mut links = Map::new();
        for index in 0..length {
            let next = json!({ "$ref": format!("#/$defs/{}", index + 1) });
            links.insert(index.to_string(), link(next));
        }
        links.insert(length.to_string(), json!({ "type": "string" }));
        json!({ "properties": { "x": { "$ref": "#/$defs/0" } }, "$defs": links })
    }

    /// An object in an object, so many times.
    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!({}), |inner, _| json!({ "x": inner }))
    }

    #[test]
    fn references_that_branch_are_counted() {
        let schema = chain(10, |next| json!({ "anyOf": [next, next] }));
        assert_eq!(effort(&schema, &json!({ "x": "a" })), Ok(()));
        for combine in ["anyOf", "allOf", "oneOf"] {
            let schema = chain(40, |next| json!({ combine: [next, next] }));
            refused(&schema, &json!({ "x": "a" }), "takes more than 100128 steps");
        }
        let schema = chain(40, |next| json!({ "if": next, "then": next, "else": next }));
        refused(&schema, &json!({ "x": "a" }), "steps");
        let schema = chain(40, |next| json!({ "dependentSchemas": { "a": next, "b": next } }));
        refused(&schema, &json!({ "x": { "a": 1, "b": 1 } }), "steps");
        let schema = chain(40, |next| json!({ "allOf": [next], "unevaluatedProperties": next }));
        refused(&schema, &json!({ "x": "a" }), "steps");
        // With each level of the value.
        for (keyword, value) in [("properties", nested(40)), ("additionalProperties", nested(40))] {
            let own = json!({ "$ref": "#" });
            let below = json!({ "anyOf": [own, own] });
            let below = if keyword == "properties" { json!({ "x": below }) } else { below };
            refused(&json!({ keyword: below }), &value, "steps");
        }
    }

    #[test]
    fn references_that_lead_too_deep_are_refused() {
        let schema = chain(10_000, |next| next);
        refused(&schema, &json!({ "x": "a" }), "more than 512 schemas");
        // It has to be read all the same, and there is no end to how long that takes.
        refused(&chain(30_000, |next| next), &json!({}), "more than 40000 values");
    }

    #[test]
    fn what_refers_to_itself_without_end_is_refused() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "anyOf": [{ "type": "string" }, { "$ref": "#" }] }),
            json!({ "$defs": { "a": { "not": { "$ref": "#/$defs/a" } } }, "$ref": "#/$defs/a" }),
            json!({
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "$recursiveAnchor": true,
                "allOf": [{ "$recursiveRef": "#" }],
            }),
        ] {
            refused(&schema, &json!({}), "more than 512 schemas");
        }
        let schema = json!({ "$dynamicAnchor": "a", "items": { "$dynamicRef": "#a" } });
        refused(&schema, &json!([1]), "may lead anywhere");
        refused(&json!({ "$ref": "#/$defs/none" }), &json!({}), "none");
    }

    #[test]
    fn what_tools_ask_for_is_not_refused() {
        // As deep as arguments may be, through references and a choice.
        let tree = json!({
            "$ref": "#/$defs/tree",
            "$defs": { "tree": {
                "type": "object",
                "properties": { "x": { "anyOf": [{ "$ref": "#/$defs/tree" }, { "type": "null" }] } },
            } },
        });
        assert_eq!(effort(&tree, &nested(127)), Ok(()));
        // As many as there may be.
        let many =
            json!({ "items": { "type": "object", "properties": { "id": { "minimum": 0 } } } });
        let values: Vec<Value> = (0..50_000).map(|id| json!({ "id": id })).collect();
        assert_eq!(effort(&many, &values.into()), Ok(()));
        // References by name, by anchor and by address.
        let named = json!({
            "items": { "anyOf": [{ "$ref": "#leaf" }, { "$ref": "T0" }] },
            "$defs": {
                "leaf": { "$anchor": "leaf", "type": "string" },
                "T0": { "$id": "T0", "items": { "$ref": "T0" } },
            },
        });
        assert_eq!(effort(&named, &json!([["a", []]])), Ok(()));
    }
}
