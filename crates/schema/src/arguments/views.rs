//! The parts of a schema that apply to one value.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::keywords::{Target, schemas};
use crate::types::Types;

/// Maximum number of schema parts that are examined in one call. Beyond that, no more values are
/// coerced, and the arguments are checked unchanged.
const STEPS: usize = 1_000_000;

/// Maximum number of schemas that are followed in a row: references, and choices within choices.
const HOPS: usize = 16;

/// A schema, and the number of its parts that may still be examined.
pub(super) struct Views<'s> {
    root: &'s Value,
    steps: Cell<usize>,
}

impl<'s> Views<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self { root, steps: Cell::new(STEPS) }
    }

    /// Returns the types that a value of this schema may have, by its keywords.
    pub(super) fn types(&self, schema: &'s Value) -> Types {
        self.types_within(schema, HOPS)
    }

    fn types_within(&self, schema: &'s Value, hops: usize) -> Types {
        let (Value::Object(rules), Some(hops)) = (schema, hops.checked_sub(1)) else {
            return Types::ALL;
        };
        if !self.step() {
            return Types::ALL;
        }
        let mut types = Types::named(rules).unwrap_or(Types::ALL);
        let listed = rules.get("enum").and_then(Value::as_array);
        if let Some(values) = listed {
            types = types.and(values.iter().map(Types::of_value).fold(Types::NONE, Types::or));
        }
        if let Some(value) = rules.get("const") {
            types = types.and(Types::of_value(value));
        }
        if let Some(target) = self.target(schema) {
            types = types.and(self.types_within(target, hops));
        }
        for branch in branches(schema, "allOf") {
            types = types.and(self.types_within(branch, hops));
        }
        for choice in ["anyOf", "oneOf"] {
            if branches(schema, choice).next().is_some() {
                let each = branches(schema, choice).map(|it| self.types_within(it, hops));
                types = types.and(each.fold(Types::NONE, Types::or));
            }
        }
        types
    }

    /// Returns the other schemas that a value of this type must match: references, all of `allOf`,
    /// and the only branch of a choice that accepts the type.
    pub(super) fn of(&self, schema: &'s Value, value: Types) -> Vec<&'s Value> {
        let mut views = Vec::new();
        self.collect(schema, value, HOPS, &mut views);
        views
    }

    fn collect(&self, schema: &'s Value, value: Types, hops: usize, views: &mut Vec<&'s Value>) {
        let Some(hops) = hops.checked_sub(1) else { return };
        if !self.step() {
            return;
        }
        views.push(schema);
        if let Some(target) = self.target(schema) {
            self.collect(target, value, hops, views);
        }
        for branch in branches(schema, "allOf") {
            self.collect(branch, value, hops, views);
        }
        for choice in ["anyOf", "oneOf"] {
            let mut of_type =
                branches(schema, choice).filter(|branch| self.types(branch).meet(value));
            if let (Some(only), None) = (of_type.next(), of_type.next()) {
                self.collect(only, value, hops, views);
            }
        }
    }

    /// Returns the target of a reference within the document.
    fn target(&self, schema: &'s Value) -> Option<&'s Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    /// Returns the keys for which any schema of the same value has a property.
    pub(super) fn declared(&self, schema: &'s Value) -> BTreeSet<&'s str> {
        let mut declared = BTreeSet::new();
        self.declare(schema, HOPS, &mut declared);
        declared
    }

    fn declare(&self, schema: &'s Value, hops: usize, declared: &mut BTreeSet<&'s str>) {
        let (Value::Object(rules), Some(hops)) = (schema, hops.checked_sub(1)) else { return };
        if !self.step() {
            return;
        }
        let properties = rules.get("properties").and_then(Value::as_object);
        declared.extend(properties.into_iter().flat_map(|it| it.keys().map(String::as_str)));
        if let Some(target) = self.target(schema) {
            self.declare(target, hops, declared);
        }
        for (name, rule) in rules {
            schemas(name, rule, Target::Same).for_each(|it| self.declare(it, hops, declared));
        }
    }

    /// Returns true if every required part was examined.
    pub(super) fn is_complete(&self) -> bool {
        self.steps.get() > 0
    }

    fn step(&self) -> bool {
        let left = self.steps.get().saturating_sub(1);
        self.steps.set(left);
        left > 0
    }
}

fn branches<'s>(schema: &'s Value, keyword: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}
