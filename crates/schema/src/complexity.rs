//! Bounds the cost of checking a value against a schema before the check.
//!
//! A schema is untrusted, and the library that checks values has no limits: with references, a few
//! lines require more evaluations than there is time for, or such deep ones that the stack
//! overflows and the process crashes.
//!
//! Patterns are matched in linear time, and their cost is counted as well: the length of the text
//! times the size of the pattern's program. Counting calls the caller's check regularly; the
//! library cannot, which is why its cost is bounded.

mod patterns;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Display;
use std::ptr;

use kitbag_base::text::shown;
use referencing::{Draft, Registry, RegistryBuilder, Resolved, Resolver, uri};
use serde_json::Value;

use self::patterns::{PROGRAMS_BYTES, TRANSLATED_BYTES, patterns, program};
use crate::keywords::{Target, schemas};
use kitbag_base::json::pointer;

pub(crate) use self::patterns::options;

/// The base URI that the library uses for a schema without an id.
const BASE: &str = "json-schema:///";

/// Maximum number of values in a schema. The cost of reading a schema in which each value refers to
/// the next is more than linear.
const SCHEMA_VALUES: u64 = 40_000;

/// Maximum number of schemas that apply within each other. Arguments of the maximum depth need four
/// per level.
const LEVELS: usize = 512;

/// Maximum total number of schemas that apply to the values of each nested schema: the library
/// examines them when it reads the schema.
const BRANCHES: u64 = 1_000_000;

/// The memory of a value in a schema, or of an applied schema, after reading.
const BYTES_PER_SCHEMA: u64 = 128;

/// Maximum number of evaluations, and of additional evaluations for each value within the checked
/// one.
const STEPS: u64 = 100_000;
const STEPS_PER_VALUE: u64 = 64;

/// The bytes of text that take about as long as one evaluation.
const BYTES_PER_STEP: u64 = 64;

/// The names and options that take about as long to compare as one evaluation.
const COMPARISONS_PER_STEP: u64 = 16;

/// The number of evaluations between two checks of the deadline.
const STEPS_PER_LOOK: u64 = 1024;

/// Maximum of bytes of text times program states that are matched in one check: one second at the 8
/// ns of the slowest engine.
const MATCHING: u64 = 1 << 27;

/// A schema that can be read and whose evaluations can be counted.
pub(crate) struct SchemaComplexity {
    registry: Registry<'static>,
    /// The number of program states of each pattern.
    patterns: HashMap<String, u64>,
    has_choices: bool,
    memory_bytes: u64,
}

/// Why a value is not checked.
#[derive(Debug)]
pub(crate) enum ComplexityError<E> {
    /// The check would be too expensive.
    TooMuch(String),
    /// The caller ended the check.
    Ended(E),
}

impl SchemaComplexity {
    /// Examines a schema before the library does.
    ///
    /// # Errors
    ///
    /// Why the schema is too expensive.
    pub(crate) fn new(schema: Value) -> Result<Self, String> {
        let values = count(&schema);
        if values > SCHEMA_VALUES {
            return Err(format!("it has more than {SCHEMA_VALUES} values"));
        }
        let registry = Registry::new()
            .draft(Draft::default().detect(&schema))
            .add(BASE, schema)
            .and_then(RegistryBuilder::prepare)
            .map_err(message)?;
        let root = find(&registry, "")?;
        let mut branches = Branches::new(root.schema);
        branches.all(root)?;
        let Branches { patterns, has_choices, total, programs_bytes, .. } = branches;
        let memory_bytes = programs_bytes.saturating_add((values + total) * BYTES_PER_SCHEMA);
        Ok(Self { registry, patterns, has_choices, memory_bytes })
    }

    /// Checks that a value can be checked against the schema at a fragment of this one. Returns the
    /// maximum number of evaluations.
    ///
    /// # Errors
    ///
    /// [`ComplexityError`] with the reason, or with the caller's error.
    pub(crate) fn check<E>(
        &self,
        fragment: &str,
        value: &Value,
        may_go_on: &dyn Fn() -> Result<(), E>,
    ) -> Result<u64, ComplexityError<E>> {
        let limit = STEPS.saturating_add(size(value).saturating_mul(STEPS_PER_VALUE));
        let patterns = &self.patterns;
        let mut steps =
            Steps { left: limit, limit, matching: MATCHING, level: 0, patterns, may_go_on };
        steps.take(&find(&self.registry, fragment)?, value)?;
        Ok(limit - steps.left)
    }

    /// Returns the estimated memory of the schema, including the library's.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns true if the schema has a choice, for which the library keeps the errors of each
    /// branch.
    pub(crate) fn has_choices(&self) -> bool {
        self.has_choices
    }
}

impl<E> From<String> for ComplexityError<E> {
    fn from(reason: String) -> Self {
        Self::TooMuch(reason)
    }
}

fn find<'r>(registry: &'r Registry<'_>, fragment: &str) -> Result<At<'r>, String> {
    let base = uri::from_str(BASE).map_err(message)?;
    Ok(At::found(registry.resolver(base).lookup(&format!("#{fragment}")).map_err(message)?))
}

/// Returns the JSON pointer of a value within another, by identity.
fn pointer_to(within: &Value, target: &Value) -> Option<String> {
    if ptr::eq(within, target) {
        return Some(String::new());
    }
    let below = |key: &str, value| Some(format!("{}{}", pointer(key), pointer_to(value, target)?));
    match within {
        Value::Object(object) => object.iter().find_map(|(key, value)| below(key, value)),
        Value::Array(elements) => {
            let mut elements = elements.iter().enumerate();
            elements.find_map(|(index, value)| below(&index.to_string(), value))
        }
        _ => None,
    }
}

/// A schema and the base of its references.
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

    /// Returns the same position with the schema's own id as base.
    fn rebased(&self) -> Result<Self, String> {
        let resource = self.draft.create_resource_ref(self.schema);
        let resolver = self.resolver.in_subresource(resource).map_err(message)?;
        Ok(Self { resolver, ..self.clone() })
    }

    fn at(&self, schema: &'r Value) -> Self {
        Self { schema, ..self.clone() }
    }

    /// Refuses a reference whose target depends on the evaluation.
    fn check_dynamic(&self, keyword: &str, rule: &Value) -> Result<(), String> {
        if let ("$dynamicRef", Value::String(reference)) = (keyword, rule)
            && let Ok(found) = self.resolver.lookup(reference)
            && found.contents().get("$dynamicAnchor").is_some()
        {
            let reference = shown(reference);
            return Err(format!("`$dynamicRef` to `{reference}` has no fixed target; use `$ref`"));
        }
        Ok(())
    }

    /// Returns the schemas that a keyword applies to the same value.
    fn beside(&self, keyword: &str, rule: &'r Value) -> Result<Vec<Self>, String> {
        Ok(match (keyword, rule) {
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                vec![Self::found(self.resolver.lookup(reference).map_err(message)?)]
            }
            ("$recursiveRef", _) => {
                vec![Self::found(self.resolver.lookup_recursive_ref().map_err(message)?)]
            }
            _ => schemas(keyword, rule, Target::Same).map(|schema| self.at(schema)).collect(),
        })
    }
}

/// Counts the schemas that apply to one value, through every reference, and collects the patterns.
struct Branches<'r> {
    root: &'r Value,
    /// The counts by schema; `None` while a schema is being counted.
    known: HashMap<*const Value, Option<u64>>,
    /// Schemas of other values that must still be examined.
    within: Vec<At<'r>>,
    total: u64,
    /// The number of program states of each pattern.
    patterns: HashMap<String, u64>,
    programs_bytes: u64,
    /// The cost of translating the patterns.
    translated: u64,
    has_choices: bool,
}

impl<'r> Branches<'r> {
    fn new(root: &'r Value) -> Self {
        Self {
            root,
            known: HashMap::new(),
            within: Vec::new(),
            total: 0,
            patterns: HashMap::new(),
            programs_bytes: 0,
            translated: 0,
            has_choices: false,
        }
    }

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
            Some(None) => return Err("it refers to itself endlessly".into()),
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
                self.add_patterns(at.schema, keyword, rule)?;
                self.has_choices |= matches!(&**keyword, "anyOf" | "oneOf");
                at.check_dynamic(keyword, rule)?;
                // The library reports dangling references if they matter.
                for beside in at.beside(keyword, rule).unwrap_or_default() {
                    branches = branches.saturating_add(self.of(&beside, level + 1)?);
                }
                let within = schemas(keyword, rule, Target::Within);
                self.within.extend(within.map(|schema| at.at(schema)));
            }
        }
        self.known.insert(key, Some(branches));
        self.total = self.total.saturating_add(branches);
        if self.total > BRANCHES {
            return Err(format!("it branches into more than {BRANCHES} schemas"));
        }
        Ok(branches)
    }

    fn add_patterns(&mut self, schema: &Value, keyword: &str, rule: &Value) -> Result<(), String> {
        for (pattern, place) in patterns(keyword, rule) {
            if self.patterns.contains_key(pattern) {
                continue;
            }
            let compiled = program(pattern).map_err(|reason| {
                let schema = pointer_to(self.root, schema).unwrap_or_default();
                let place = format!("{schema}/{keyword}{place}");
                format!(
                    "the pattern `{}` at `{}` cannot be used: {reason}",
                    shown(pattern),
                    shown(&place)
                )
            })?;
            self.programs_bytes += compiled.bytes;
            if self.programs_bytes > PROGRAMS_BYTES.as_u64() {
                return Err(format!("its patterns need more than {PROGRAMS_BYTES} in total"));
            }
            self.translated += compiled.translation;
            if self.translated > TRANSLATED_BYTES {
                return Err("its patterns have too many escapes in total".into());
            }
            self.patterns.insert(pattern.to_owned(), compiled.states);
        }
        Ok(())
    }
}

/// Visits everything that may be evaluated: every branch of a choice, regardless of the results of
/// the others.
struct Steps<'e, E> {
    left: u64,
    limit: u64,
    /// The matching cost that is left.
    matching: u64,
    level: usize,
    patterns: &'e HashMap<String, u64>,
    may_go_on: &'e dyn Fn() -> Result<(), E>,
}

impl<E> Steps<'_, E> {
    fn spend(&mut self, steps: u64) -> Result<(), ComplexityError<E>> {
        let looks = self.left / STEPS_PER_LOOK;
        self.left = self
            .left
            .checked_sub(steps)
            .ok_or_else(|| format!("checking this value takes more than {} steps", self.limit))?;
        if self.left / STEPS_PER_LOOK < looks {
            (self.may_go_on)().map_err(ComplexityError::Ended)?;
        }
        Ok(())
    }

    /// Counts the cost of matching a text.
    fn spend_match(&mut self, pattern: &str, text: &str) -> Result<(), ComplexityError<E>> {
        let states = self.patterns.get(pattern).copied().unwrap_or(1);
        let cost = (text.len() as u64 + 1).saturating_mul(states);
        self.matching = self.matching.checked_sub(cost).ok_or_else(|| {
            format!("matching this value with its patterns takes more than {MATCHING} steps")
        })?;
        self.spend(1)
    }

    fn take(&mut self, at: &At<'_>, value: &Value) -> Result<(), ComplexityError<E>> {
        self.spend(1)?;
        let Value::Object(rules) = at.schema else { return Ok(()) };
        let at = at.rebased()?;
        if self.level == LEVELS {
            return Err(too_deep().into());
        }
        self.level += 1;
        // For these two keywords, all others are evaluated again.
        let again = ["unevaluatedItems", "unevaluatedProperties"];
        let times = if again.iter().any(|keyword| rules.contains_key(*keyword)) { 2 } else { 1 };
        for _ in 0..times {
            for (keyword, rule) in rules {
                self.spend(comparing(keyword, rule, value))?;
                for beside in at.beside(keyword, rule)? {
                    self.take(&beside, value)?;
                }
                self.within(&at, keyword, rule, value)?;
            }
        }
        self.level -= 1;
        Ok(())
    }

    /// Returns the values within this one, with the schemas that a keyword applies to them.
    fn within<'r>(
        &mut self,
        at: &At<'r>,
        keyword: &str,
        rule: &'r Value,
        value: &Value,
    ) -> Result<(), ComplexityError<E>> {
        match (keyword, rule, value) {
            ("pattern", Value::String(pattern), Value::String(text)) => {
                self.spend_match(pattern, text)
            }
            ("properties", Value::Object(schemas), Value::Object(object)) => schemas
                .iter()
                .filter_map(|(key, schema)| object.get(key).map(|value| (schema, value)))
                .try_for_each(|(schema, value)| self.take(&at.at(schema), value)),
            ("patternProperties", Value::Object(schemas), Value::Object(object)) => {
                schemas.iter().try_for_each(|(pattern, schema)| {
                    object.iter().try_for_each(|(name, value)| {
                        // Once for the keyword itself, and once for the properties beside it.
                        self.spend_match(pattern, name)?;
                        self.spend_match(pattern, name)?;
                        self.take(&at.at(schema), value)
                    })
                })
            }
            ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(object)) => {
                object.values().try_for_each(|value| self.take(&at.at(schema), value))
            }
            ("propertyNames", schema, Value::Object(object)) => object
                .keys()
                .try_for_each(|name| self.take(&at.at(schema), &Value::String(name.clone()))),
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

/// Returns the cost of a keyword's own comparisons, in evaluations.
fn comparing(keyword: &str, rule: &Value, value: &Value) -> u64 {
    let compared = match (keyword, rule, value) {
        (
            "properties" | "dependentSchemas" | "dependentRequired" | "dependencies",
            Value::Object(rules),
            Value::Object(_),
        ) => rules.len() as u64,
        ("required", Value::Array(names), Value::Object(_)) => names.len() as u64,
        ("enum", Value::Array(options), Value::Null | Value::Bool(_) | Value::Number(_)) => {
            options.len() as u64
        }
        ("enum" | "const", rule, _) => size(rule),
        ("uniqueItems", _, Value::Array(_)) => size(value),
        ("format", Value::String(format), Value::String(text)) if format == "regex" => {
            // The library compares each group name with all previous ones.
            let names = text.matches("(?<").count() + text.matches("\\k").count();
            (names as u64).pow(2) + text.len() as u64
        }
        (_, _, Value::String(text)) => return text.len() as u64 / BYTES_PER_STEP,
        _ => 0,
    };
    compared / COMPARISONS_PER_STEP
}

fn too_deep() -> String {
    format!("more than {LEVELS} schemas apply within each other")
}

fn message(error: impl Display) -> String {
    error.to_string()
}

/// Returns the cost of examining a value: its values, and a step per block of text.
pub(crate) fn size(value: &Value) -> u64 {
    let text = |text: &str| text.len() as u64 / BYTES_PER_STEP;
    1 + match value {
        Value::String(own) => text(own),
        Value::Array(elements) => elements.iter().map(size).sum(),
        Value::Object(object) => object.iter().map(|(key, value)| text(key) + size(value)).sum(),
        _ => 0,
    }
}

/// Counts the values in a value, including itself.
pub(crate) fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0,
    }
}
