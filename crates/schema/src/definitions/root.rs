//! The root of an input schema, which every interface requires to be an object.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::note::Note;
use super::reference::resolve;
use crate::complexity::count;
use crate::types::Types;
use kitbag_base::json::pointer;

/// Maximum number of references that are followed in a row. A longer chain is a cycle.
const HOPS: usize = 16;

/// Maximum number of values in the properties of all branches of combined schemas, and the cost of
/// a branch. With references, a short untrusted schema can have any number.
const VALUES: u64 = 250_000;
const VALUES_PER_BRANCH: u64 = 1_000;

/// Keywords that do not restrict values, or contain the targets of references.
const HARMLESS: [&str; 12] = [
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
];

/// Returns the schema with `type` if it was missing: arguments are always an object.
pub(super) fn typed(schema: &Value) -> Map<String, Value> {
    let mut typed = Map::new();
    let empty = Map::new();
    let rules = schema.as_object().unwrap_or(&empty);
    if !rules.contains_key("type") {
        typed.insert("type".into(), "object".into());
    }
    typed.extend(rules.clone());
    typed
}

/// Returns the schema with type `object`. If the root is only a reference to an object, returns
/// that object.
pub(super) fn object(schema: &Value) -> Map<String, Value> {
    let mut rules = typed(schema);
    for _ in 0..HOPS {
        let is_plain = rules.keys().all(|key| key == "type" || HARMLESS.contains(&&**key));
        let Some(Value::String(reference)) = rules.get("$ref") else { break };
        let target = match resolve(schema, reference) {
            Some((_, target @ Value::Object(_))) if is_plain && target != schema => typed(target),
            _ => break,
        };
        rules.remove("$ref");
        // The keywords at the root are meant for this position.
        let outer = std::mem::replace(&mut rules, target);
        for (key, value) in outer.into_iter().filter(|(key, _)| key != "type") {
            rules.insert(key, value);
        }
    }
    rules.insert("type".into(), "object".into());
    rules
}

/// Like [`object`], without some keywords. The properties in the branches of combined schemas are
/// moved to the root.
pub(super) fn object_without(
    schema: &Value,
    forbidden: &[&str],
    notes: &mut Vec<Note>,
) -> Map<String, Value> {
    let mut rules = object(schema);
    let found: Vec<_> = forbidden.iter().filter(|key| rules.contains_key(**key)).collect();
    if found.is_empty() {
        return rules;
    }
    let shape = Shape::of(schema, &rules, &mut { VALUES }).unwrap_or_default();
    for key in found {
        rules.remove(*key);
        let what = match *key {
            "allOf" => {
                "is not accepted at the root: the properties of its branches are listed there, \
                 and the rest is checked only at the call"
            }
            "anyOf" | "oneOf" => {
                "is not accepted at the root: the properties of all its branches are listed \
                 there, and their combinations are checked only at the call"
            }
            _ => "is not accepted at the root, and is checked only at the call",
        };
        notes.push(Note::new(pointer(key), what));
    }
    if shape.is_closed {
        rules.insert("additionalProperties".into(), false.into());
    }
    if !shape.properties.is_empty() {
        rules.insert("properties".into(), shape.properties.into());
    }
    if !shape.required.is_empty() {
        let required: Vec<Value> = shape.required.into_iter().map(Value::from).collect();
        rules.insert("required".into(), required.into());
    }
    rules
}

/// Returns the keys that a schema requires.
pub(super) fn required(rules: &Map<String, Value>) -> impl Iterator<Item = &str> {
    rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The properties that a schema has for an object, in any combination.
///
/// Every object that matches the schema matches this as well, with one exception: a property that
/// only some branches of a choice have is assumed to belong to them.
#[derive(Default)]
struct Shape {
    properties: Map<String, Value>,
    required: BTreeSet<String>,
    is_closed: bool,
}

impl Shape {
    /// `None` if the schema does not accept objects. Values beyond `left` are omitted.
    fn of(root: &Value, rules: &Map<String, Value>, left: &mut u64) -> Option<Self> {
        if Types::named(rules).is_some_and(|named| !named.meet(Types::OBJECT)) {
            return None;
        }
        let properties = rules.get("properties").and_then(Value::as_object);
        let mut shape = Self {
            properties: properties.cloned().unwrap_or_default(),
            required: required(rules).map(str::to_owned).collect(),
            is_closed: rules.get("additionalProperties") == Some(&Value::Bool(false)),
        };
        let branches = |key| rules.get(key).and_then(Value::as_array).into_iter().flatten();
        for schema in branches("allOf") {
            shape = shape.and(Self::of_branch(root, schema, left)?);
        }
        for key in ["anyOf", "oneOf"] {
            if rules.contains_key(key) {
                let shapes = branches(key).filter_map(|schema| Self::of_branch(root, schema, left));
                shape = shape.and(shapes.reduce(Self::or)?);
            }
        }
        if let Some(Value::String(reference)) = rules.get("$ref")
            && let Some((_, target)) = resolve(root, reference)
        {
            shape = shape.and(Self::of_branch(root, target, left)?);
        }
        Some(shape)
    }

    fn of_branch(root: &Value, schema: &Value, left: &mut u64) -> Option<Self> {
        let Value::Object(rules) = schema else {
            return (*schema != Value::Bool(false)).then(Self::default);
        };
        let counted = ["properties", "required"].iter().filter_map(|key| rules.get(*key));
        let values = VALUES_PER_BRANCH + counted.map(count).sum::<u64>();
        match left.checked_sub(values) {
            Some(rest) => *left = rest,
            None => return Some(Self::default()),
        }
        Self::of(root, rules, left)
    }

    /// Accepts values that match both.
    fn and(mut self, mut other: Self) -> Self {
        if self.is_closed {
            other.properties.retain(|key, _| self.properties.contains_key(key));
        }
        if other.is_closed {
            self.properties.retain(|key, _| other.properties.contains_key(key));
        }
        self.required.append(&mut other.required);
        self.is_closed |= other.is_closed;
        self.add(other.properties, "allOf");
        self
    }

    /// Accepts values that match either.
    fn or(mut self, other: Self) -> Self {
        self.required.retain(|key| other.required.contains(key));
        self.is_closed &= other.is_closed;
        self.add(other.properties, "anyOf");
        self
    }

    /// Adds properties. An existing property is combined with the new one.
    fn add(&mut self, properties: Map<String, Value>, combination: &str) {
        for (key, schema) in properties {
            match self.properties.get_mut(&key) {
                None => {
                    self.properties.insert(key, schema);
                }
                Some(known) if *known == schema => {}
                Some(known) => {
                    let known_branches = match known.as_object() {
                        Some(rules) if rules.len() == 1 => {
                            rules.get(combination).and_then(Value::as_array).cloned()
                        }
                        _ => None,
                    };
                    let mut branches = known_branches.unwrap_or_else(|| vec![known.clone()]);
                    if !branches.contains(&schema) {
                        branches.push(schema);
                    }
                    let mut combined = Map::new();
                    combined.insert(combination.into(), branches.into());
                    *known = combined.into();
                }
            }
        }
    }
}
