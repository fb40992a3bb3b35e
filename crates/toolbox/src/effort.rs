//! How much it takes to check a value against a schema, found out before it is done.
//!
//! A schema is the tool's word, and the library that checks against it stops at
//! nothing: with references a few lines ask for more evaluations than there is
//! time, or for such deep ones that the stack ends, and with it the process.

use std::collections::HashMap;
use std::fmt::Display;
use std::ptr;

use referencing::{Draft, Registry, RegistryBuilder, Resolved, Resolver, uri};
use serde_json::{Map, Value};

/// Under which address the library reads a schema that has none of its own.
const BASE: &str = "json-schema:///";

/// How many values there are in a schema at most. To read one in which each refers
/// to the next takes more than in proportion.
const SCHEMA_VALUES: u64 = 40_000;

/// How many schemas apply one within the other at most. Arguments that are as deep as
/// they may be take four for each of their levels.
const LEVELS: usize = 512;

/// How many schemas apply at most to what each schema within one applies to, taken
/// together: the library looks at them when it reads the schema.
const BRANCHES: u64 = 1_000_000;

/// How many evaluations there are at most, and how many more for each value within
/// the one that is checked.
const STEPS: u64 = 100_000;
const STEPS_PER_VALUE: u64 = 64;

/// A schema that can be read, and whose evaluations can be counted.
pub(crate) struct Effort<'a>(Registry<'a>);

impl<'a> Effort<'a> {
    /// Looks at a schema before the library does.
    ///
    /// # Errors
    ///
    /// Says what would take too much.
    pub(crate) fn new(schema: &'a Value) -> Result<Self, String> {
        if count(schema) > SCHEMA_VALUES {
            return Err(format!("it consists of more than {SCHEMA_VALUES} values"));
        }
        let registry = Registry::new()
            .draft(Draft::default().detect(schema))
            .add(BASE, schema)
            .and_then(RegistryBuilder::prepare)
            .map_err(said)?;
        let effort = Self(registry);
        let mut branches = Branches::default();
        branches.all(effort.find("")?)?;
        Ok(effort)
    }

    /// Makes sure that a value can be checked against the schema at a place in this
    /// one, the fragment of a URI.
    ///
    /// # Errors
    ///
    /// Says what would take too much.
    pub(crate) fn check(&self, fragment: &str, value: &Value) -> Result<(), String> {
        let limit = STEPS.saturating_add(count(value).saturating_mul(STEPS_PER_VALUE));
        Steps { left: limit, limit, level: 0 }.take(&self.find(fragment)?, value)
    }

    fn find(&self, fragment: &str) -> Result<At<'_>, String> {
        let base = uri::from_str(BASE).map_err(said)?;
        Ok(At::found(self.0.resolver(base).lookup(&format!("#{fragment}")).map_err(said)?))
    }
}

/// A schema, and from where its references lead.
#[derive(Clone)]
struct At<'r> {
    schema: &'r Value,
    resolver: Resolver<'r>,
    draft: Draft,
}

impl<'r> At<'r> {
    fn found(found: Resolved<'r>) -> Self {
        let (schema, resolver, draft) = found.into_inner();
        Self { schema, resolver, draft }
    }

    /// The same place with the address that the schema gives itself.
    fn rebased(&self) -> Result<Self, String> {
        let resource = self.draft.create_resource_ref(self.schema);
        let resolver = self.resolver.in_subresource(resource).map_err(said)?;
        Ok(Self { resolver, ..self.clone() })
    }

    fn at(&self, schema: &'r Value) -> Self {
        Self { schema, ..self.clone() }
    }

    /// The schemas that one of its keywords applies to the same value.
    fn beside(&self, keyword: &str, rule: &'r Value) -> Result<Vec<Self>, String> {
        Ok(match (keyword, rule) {
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                let found = self.resolver.lookup(reference).map_err(said)?;
                if keyword == "$dynamicRef" && found.contents().get("$dynamicAnchor").is_some() {
                    return Err(format!("`$dynamicRef` to `{reference}` may lead anywhere"));
                }
                vec![Self::found(found)]
            }
            ("$recursiveRef", _) => {
                vec![Self::found(self.resolver.lookup_recursive_ref().map_err(said)?)]
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter().map(|schema| self.at(schema)).collect()
            }
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                schemas.values().map(|schema| self.at(schema)).collect()
            }
            ("not" | "if" | "then" | "else", schema) => vec![self.at(schema)],
            _ => Vec::new(),
        })
    }
}

/// Finds out how many schemas apply to one value, through every reference.
#[derive(Default)]
struct Branches<'r> {
    /// By schema; nothing while it is being found out.
    known: HashMap<*const Value, Option<u64>>,
    /// Schemas that apply to other values, which are yet to be looked at.
    within: Vec<At<'r>>,
    total: u64,
}

impl<'r> Branches<'r> {
    fn all(&mut self, root: At<'r>) -> Result<(), String> {
        self.within.push(root);
        while let Some(at) = self.within.pop() {
            self.of(&at, 0)?;
        }
        Ok(())
    }

    fn of(&mut self, at: &At<'r>, level: usize) -> Result<u64, String> {
        let key = ptr::from_ref(at.schema);
        match self.known.get(&key) {
            Some(Some(branches)) => return Ok(*branches),
            Some(None) => return Err("it refers to itself without end".into()),
            None => {}
        }
        if level == LEVELS {
            return Err(too_deep());
        }
        self.known.insert(key, None);
        let mut branches: u64 = 1;
        if let Value::Object(rules) = at.schema {
            let at = at.rebased()?;
            for (keyword, rule) in rules {
                // What leads nowhere is told by the library, where it matters.
                for beside in at.beside(keyword, rule).unwrap_or_default() {
                    branches = branches.saturating_add(self.of(&beside, level + 1)?);
                }
                self.within.extend(schemas_within(keyword, rule).map(|schema| at.at(schema)));
            }
        }
        self.known.insert(key, Some(branches));
        self.total = self.total.saturating_add(branches);
        if self.total > BRANCHES {
            return Err(format!("it branches into more than {BRANCHES} schemas"));
        }
        Ok(branches)
    }
}

/// The schemas that a keyword applies to other values.
fn schemas_within<'r>(keyword: &str, rule: &'r Value) -> impl Iterator<Item = &'r Value> {
    let (each, one) = match (keyword, rule) {
        ("properties" | "patternProperties", Value::Object(schemas)) => (Some(schemas), None),
        (
            "additionalProperties"
            | "unevaluatedProperties"
            | "propertyNames"
            | "items"
            | "additionalItems"
            | "unevaluatedItems"
            | "contains"
            | "prefixItems",
            schema,
        ) => (None, Some(schema)),
        _ => (None, None),
    };
    let several = one.and_then(Value::as_array);
    each.into_iter().flat_map(Map::values).chain(several.into_iter().flatten()).chain(one)
}

/// Goes through all that may be evaluated: every branch of a choice, whatever the
/// others say.
struct Steps {
    left: u64,
    limit: u64,
    level: usize,
}

impl Steps {
    fn take(&mut self, at: &At<'_>, value: &Value) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            format!("to check this value against it takes more than {} steps", self.limit)
        })?;
        let Value::Object(rules) = at.schema else { return Ok(()) };
        let at = at.rebased()?;
        if self.level == LEVELS {
            return Err(too_deep());
        }
        self.level += 1;
        // What these two apply to is found out by evaluating all the rest again.
        let again = ["unevaluatedItems", "unevaluatedProperties"];
        let times = if again.iter().any(|keyword| rules.contains_key(*keyword)) { 2 } else { 1 };
        for _ in 0..times {
            for (keyword, rule) in rules {
                for beside in at.beside(keyword, rule)? {
                    self.take(&beside, value)?;
                }
                self.within(&at, keyword, rule, value)?;
            }
        }
        self.level -= 1;
        Ok(())
    }

    /// What a keyword applies to the values within this one.
    fn within<'r>(
        &mut self,
        at: &At<'r>,
        keyword: &str,
        rule: &'r Value,
        value: &Value,
    ) -> Result<(), String> {
        match (keyword, rule, value) {
            ("properties", Value::Object(schemas), Value::Object(object)) => schemas
                .iter()
                .filter_map(|(key, schema)| object.get(key).map(|value| (schema, value)))
                .try_for_each(|(schema, value)| self.take(&at.at(schema), value)),
            ("patternProperties", Value::Object(schemas), Value::Object(object)) => {
                schemas.values().try_for_each(|schema| {
                    object.values().try_for_each(|value| self.take(&at.at(schema), value))
                })
            }
            ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(object)) => {
                object.values().try_for_each(|value| self.take(&at.at(schema), value))
            }
            // A name is a text, within which nothing is evaluated.
            ("propertyNames", schema, Value::Object(object)) => {
                object.values().try_for_each(|_| self.take(&at.at(schema), &Value::Null))
            }
            ("prefixItems" | "items", Value::Array(schemas), Value::Array(elements)) => schemas
                .iter()
                .zip(elements)
                .try_for_each(|(schema, value)| self.take(&at.at(schema), value)),
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains",
                schema,
                Value::Array(elements),
            ) => elements.iter().try_for_each(|value| self.take(&at.at(schema), value)),
            _ => Ok(()),
        }
    }
}

fn too_deep() -> String {
    format!("more than {LEVELS} schemas apply one within the other")
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
    use serde_json::json;

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
            // Whether the value is there or not: it is looked at when it is read.
            let schema = chain(40, |next| json!({ combine: [next, next] }));
            refused(&schema, &json!({}), "branches into more than 1000000 schemas");
        }
        let schema = chain(40, |next| json!({ "if": next, "then": next, "else": next }));
        refused(&schema, &json!({}), "branches");
        let schema = chain(40, |next| json!({ "dependentSchemas": { "a": next, "b": next } }));
        refused(&schema, &json!({}), "branches");
        let schema = chain(40, |next| json!({ "allOf": [next], "unevaluatedProperties": next }));
        refused(&schema, &json!({ "x": "a" }), "takes more than 100128 steps");
        // With each level of the value.
        let own = json!({ "$ref": "#" });
        let both = json!({ "anyOf": [own, own] });
        for below in ["additionalProperties", "unevaluatedProperties"] {
            refused(&json!({ below: both }), &nested(40), "steps");
        }
        refused(&json!({ "properties": { "x": both } }), &nested(40), "steps");
        let elements = (0..40).fold(json!([]), |inner, _| json!([inner]));
        for below in ["items", "contains", "unevaluatedItems"] {
            refused(&json!({ below: both }), &elements, "steps");
        }
        refused(&json!({ "prefixItems": [both] }), &elements, "steps");
    }

    #[test]
    fn references_that_lead_too_deep_are_refused() {
        refused(&chain(10_000, |next| next), &json!({}), "more than 512 schemas");
        let own = json!({ "properties": { "x": { "$ref": "#" } } });
        refused(&own, &nested(1_000), "more than 512 schemas");
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
            refused(&schema, &json!({}), "without end");
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
