//! How much it takes to check a value against a schema, found out before it is done.
//!
//! A schema is the tool's word, and the library that checks against it stops at
//! nothing: with references a few lines ask for more evaluations than there is
//! time, or for such deep ones that the stack ends, and with it the process.
//!
//! Patterns are matched in linear time, and what that takes is counted too: the
//! length of the text times the size of the pattern's program. Counting asks now and
//! then whether it may go on; the library that checks afterwards cannot, which is why
//! what it may take is bounded.

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

/// What a value of a schema, or a schema that applies, takes in memory once it is read.
const BYTES_PER_SCHEMA: u64 = 128;

/// How many evaluations there are at most, and how many more for each value within
/// the one that is checked.
const STEPS: u64 = 100_000;
const STEPS_PER_VALUE: u64 = 64;

/// Bytes of text that take about as long as one evaluation.
const BYTES_PER_STEP: u64 = 64;

/// Names and options that take about as long to compare as one evaluation.
const COMPARISONS_PER_STEP: u64 = 16;

/// How many evaluations pass between two looks at the deadline.
const STEPS_PER_LOOK: u64 = 1024;

/// How many bytes of text times states of programs are matched at most in one
/// check: a second, at the 8 ns that the slowest engine takes.
const MATCHING: u64 = 1 << 27;

/// A schema that can be read, and whose evaluations can be counted.
pub(crate) struct SchemaComplexity {
    registry: Registry<'static>,
    /// The states of the program of each pattern.
    patterns: HashMap<String, u64>,
    has_choices: bool,
    memory_bytes: u64,
}

/// Why a value is not checked.
#[derive(Debug)]
pub(crate) enum ComplexityError<E> {
    /// It would take too much.
    TooMuch(String),
    /// The caller has ended the check meanwhile.
    Ended(E),
}

impl SchemaComplexity {
    /// Looks at a schema before the library does.
    ///
    /// # Errors
    ///
    /// Says what would take too much.
    pub(crate) fn new(schema: Value) -> Result<Self, String> {
        let values = count(&schema);
        if values > SCHEMA_VALUES {
            return Err(format!("it consists of more than {SCHEMA_VALUES} values"));
        }
        let registry = Registry::new()
            .draft(Draft::default().detect(&schema))
            .add(BASE, schema)
            .and_then(RegistryBuilder::prepare)
            .map_err(said)?;
        let root = find(&registry, "")?;
        let mut branches = Branches::new(root.schema);
        branches.all(root)?;
        let Branches { patterns, has_choices, total, programs_bytes, .. } = branches;
        let memory_bytes = programs_bytes.saturating_add((values + total) * BYTES_PER_SCHEMA);
        Ok(Self { registry, patterns, has_choices, memory_bytes })
    }

    /// Makes sure that a value can be checked against the schema at a place in this
    /// one, the fragment of a URI. Returns how many evaluations that takes at most.
    ///
    /// # Errors
    ///
    /// [`ComplexityError`] says what would take too much, or why the caller has ended the check.
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

    /// What it takes in memory together with what the library makes of it, as estimated.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Whether there is a choice in it, for which the library keeps what is wrong
    /// with each branch.
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
    let base = uri::from_str(BASE).map_err(said)?;
    Ok(At::found(registry.resolver(base).lookup(&format!("#{fragment}")).map_err(said)?))
}

/// The JSON pointer of a value within another, the very same one.
fn pointer_to(within: &Value, wanted: &Value) -> Option<String> {
    if ptr::eq(within, wanted) {
        return Some(String::new());
    }
    let below = |key: &str, value| Some(format!("{}{}", pointer(key), pointer_to(value, wanted)?));
    match within {
        Value::Object(object) => object.iter().find_map(|(key, value)| below(key, value)),
        Value::Array(elements) => {
            let mut elements = elements.iter().enumerate();
            elements.find_map(|(index, value)| below(&index.to_string(), value))
        }
        _ => None,
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

    /// Refuses a reference of which only an evaluation could tell where it leads.
    fn check_dynamic(&self, keyword: &str, rule: &Value) -> Result<(), String> {
        if let ("$dynamicRef", Value::String(reference)) = (keyword, rule)
            && let Ok(found) = self.resolver.lookup(reference)
            && found.contents().get("$dynamicAnchor").is_some()
        {
            let reference = shown(reference);
            return Err(format!("`$dynamicRef` to `{reference}` may lead anywhere; use `$ref`"));
        }
        Ok(())
    }

    /// The schemas that one of its keywords applies to the same value.
    fn beside(&self, keyword: &str, rule: &'r Value) -> Result<Vec<Self>, String> {
        Ok(match (keyword, rule) {
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                vec![Self::found(self.resolver.lookup(reference).map_err(said)?)]
            }
            ("$recursiveRef", _) => {
                vec![Self::found(self.resolver.lookup_recursive_ref().map_err(said)?)]
            }
            _ => schemas(keyword, rule, Target::Same).map(|schema| self.at(schema)).collect(),
        })
    }
}

/// Finds out how many schemas apply to one value, through every reference, and
/// which patterns there are.
struct Branches<'r> {
    root: &'r Value,
    /// By schema; nothing while it is being found out.
    known: HashMap<*const Value, Option<u64>>,
    /// Schemas that apply to other values, which are yet to be looked at.
    within: Vec<At<'r>>,
    total: u64,
    /// The states of the program of each pattern.
    patterns: HashMap<String, u64>,
    programs_bytes: u64,
    /// What translating the patterns takes.
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
                self.add_patterns(at.schema, keyword, rule)?;
                self.has_choices |= matches!(&**keyword, "anyOf" | "oneOf");
                at.check_dynamic(keyword, rule)?;
                // The library reports a reference to nothing, where it matters.
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
                return Err(format!("its patterns together take more than {PROGRAMS_BYTES}"));
            }
            self.translated += compiled.translation;
            if self.translated > TRANSLATED_BYTES {
                return Err("its patterns together have too many escapes".into());
            }
            self.patterns.insert(pattern.to_owned(), compiled.states);
        }
        Ok(())
    }
}

/// Goes through all that may be evaluated: every branch of a choice, whatever the
/// others say.
struct Steps<'e, E> {
    left: u64,
    limit: u64,
    /// How much may still be matched.
    matching: u64,
    level: usize,
    patterns: &'e HashMap<String, u64>,
    may_go_on: &'e dyn Fn() -> Result<(), E>,
}

impl<E> Steps<'_, E> {
    fn spend(&mut self, steps: u64) -> Result<(), ComplexityError<E>> {
        let looks = self.left / STEPS_PER_LOOK;
        self.left = self.left.checked_sub(steps).ok_or_else(|| {
            format!("to check this value against it takes more than {} steps", self.limit)
        })?;
        if self.left / STEPS_PER_LOOK < looks {
            (self.may_go_on)().map_err(ComplexityError::Ended)?;
        }
        Ok(())
    }

    /// Counts a text that is matched against a pattern.
    fn spend_match(&mut self, pattern: &str, text: &str) -> Result<(), ComplexityError<E>> {
        let states = self.patterns.get(pattern).copied().unwrap_or(1);
        let cost = (text.len() as u64 + 1).saturating_mul(states);
        self.matching = self.matching.checked_sub(cost).ok_or_else(|| {
            format!("to match this value with its patterns takes more than {MATCHING} steps")
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
        // What these two apply to is found out by evaluating all the rest again.
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

    /// What a keyword applies to the values within this one.
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
                        // Once for itself, and once for the properties beside it.
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

/// How many evaluations it is worth what a keyword compares, besides the schemas that
/// it applies.
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
            // The library compares each name of a group with all before it.
            let names = text.matches("(?<").count() + text.matches("\\k").count();
            (names as u64).pow(2) + text.len() as u64
        }
        (_, _, Value::String(text)) => return text.len() as u64 / BYTES_PER_STEP,
        _ => 0,
    };
    compared / COMPARISONS_PER_STEP
}

fn too_deep() -> String {
    format!("more than {LEVELS} schemas apply one within the other")
}

fn said(error: impl Display) -> String {
    error.to_string()
}

/// What a value takes to look at: its values, and a step for so many bytes of text.
pub(crate) fn size(value: &Value) -> u64 {
    let text = |text: &str| text.len() as u64 / BYTES_PER_STEP;
    1 + match value {
        Value::String(own) => text(own),
        Value::Array(elements) => elements.iter().map(size).sum(),
        Value::Object(object) => object.iter().map(|(key, value)| text(key) + size(value)).sum(),
        _ => 0,
    }
}

/// How many values a value consists of, itself among them.
pub(crate) fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0,
    }
}
