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

use std::collections::HashMap;
use std::fmt::Display;
use std::ptr;

use jsonschema::PatternOptions;
use kitbag_contract::ByteSize;
use kitbag_contract::text::shown;
use referencing::{Draft, Registry, RegistryBuilder, Resolved, Resolver, uri};
use regex_automata::nfa::thompson::{Compiler, Config};
use serde_json::{Map, Value};

use crate::arguments::pointer;

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

/// Bytes of text that take about as long as one evaluation.
const BYTES_PER_STEP: u64 = 64;

/// Names and options that take about as long to compare as one evaluation.
const COMPARISONS_PER_STEP: u64 = 16;

/// How many evaluations pass between two looks at the deadline.
const STEPS_PER_LOOK: u64 = 1024;

/// The largest program that a pattern is compiled to.
const PROGRAM_BYTES: ByteSize = ByteSize::mib(1);

/// The most that the programs of all patterns of a schema may take in memory while
/// texts are matched: as much as a call has by default.
const PROGRAMS_BYTES: ByteSize = ByteSize::mib(64);

/// What each of a pattern's two automata may keep of what it has found out.
const AUTOMATON_BYTES: u64 = 128 << 10;

/// The largest table that the engine makes for a pattern with groups, and what a
/// state of the program takes of it: two numbers of 4 bytes for each value of a byte.
const GROUPS_BYTES: u64 = 1 << 20;
const GROUPS_BYTES_PER_STATE: u64 = 2 << 10;

/// How many bytes of text times states of programs are matched at most in one
/// check: a second, at the 8 ns that the slowest engine takes.
const MATCHING: u64 = 1 << 27;

/// The options under which the library reads every schema of a tool's.
pub(crate) fn options<'i>() -> jsonschema::ValidationOptions<'i> {
    let patterns = PatternOptions::regex()
        .size_limit(PROGRAM_BYTES.as_usize())
        .dfa_size_limit(AUTOMATON_BYTES as usize);
    jsonschema::options().with_pattern_options(patterns)
}

/// A schema that can be read, and whose evaluations can be counted.
pub(crate) struct SchemaComplexity<'a> {
    registry: Registry<'a>,
    /// The states of the program of each pattern.
    patterns: HashMap<String, u64>,
    has_choices: bool,
}

/// Why a value is not checked.
#[derive(Debug)]
pub(crate) enum Refusal<E> {
    /// It would take too much.
    TooMuch(String),
    /// The caller has ended the check meanwhile.
    Ended(E),
}

impl<'a> SchemaComplexity<'a> {
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
        let mut branches = Branches::new(schema);
        branches.all(find(&registry, "")?)?;
        let Branches { patterns, has_choices, .. } = branches;
        Ok(Self { registry, patterns, has_choices })
    }

    /// Makes sure that a value can be checked against the schema at a place in this
    /// one, the fragment of a URI. Returns how many evaluations that takes at most.
    ///
    /// # Errors
    ///
    /// [`Refusal`] says what would take too much, or why the caller has ended the check.
    pub(crate) fn check<E>(
        &self,
        fragment: &str,
        value: &Value,
        may_go_on: &dyn Fn() -> Result<(), E>,
    ) -> Result<u64, Refusal<E>> {
        let limit = STEPS.saturating_add(size(value).saturating_mul(STEPS_PER_VALUE));
        let patterns = &self.patterns;
        let mut steps =
            Steps { left: limit, limit, matching: MATCHING, level: 0, patterns, may_go_on };
        steps.take(&find(&self.registry, fragment)?, value)?;
        Ok(limit - steps.left)
    }

    /// Whether there is a choice in it, for which the library keeps what is wrong
    /// with each branch.
    pub(crate) fn has_choices(&self) -> bool {
        self.has_choices
    }
}

impl<E> From<String> for Refusal<E> {
    fn from(reason: String) -> Self {
        Self::TooMuch(reason)
    }
}

fn find<'r>(registry: &'r Registry<'_>, fragment: &str) -> Result<At<'r>, String> {
    let base = uri::from_str(BASE).map_err(said)?;
    Ok(At::found(registry.resolver(base).lookup(&format!("#{fragment}")).map_err(said)?))
}

/// Compiles a pattern as the library does later on, and returns how many states its
/// program has, and what it takes in memory.
fn program(pattern: &str) -> Result<(u64, u64), String> {
    let translated = jsonschema_regex::to_rust_regex(pattern)
        .map_err(|()| "it is not a regular expression of ECMA-262".to_owned())?;
    let limit = PROGRAM_BYTES;
    let config = Config::new().nfa_size_limit(Some(limit.as_usize()));
    let program =
        Compiler::new().configure(config).build(&translated).map_err(|error| {
            match error.size_limit() {
                Some(_) => format!("it takes more than {limit} when it is compiled; shorten it"),
                None => {
                    "look-around and back-references are not supported; write it without".into()
                }
            }
        })?;
    let states = program.states().len() as u64;
    let groups = match program.group_info().explicit_slot_len() {
        0 => 0,
        _ => GROUPS_BYTES.min(states * GROUPS_BYTES_PER_STATE),
    };
    Ok((states, 2 * (program.memory_usage() as u64 + AUTOMATON_BYTES) + groups))
}

/// The patterns of a keyword, and the place of each below the keyword.
fn patterns<'r>(keyword: &str, rule: &'r Value) -> impl Iterator<Item = (&'r str, String)> {
    let (own, keys) = match (keyword, rule) {
        ("pattern", Value::String(pattern)) => (Some((&**pattern, String::new())), None),
        ("patternProperties", Value::Object(schemas)) => (None, Some(schemas)),
        _ => (None, None),
    };
    let keys = keys.into_iter().flat_map(Map::keys).map(|key| (&**key, pointer(key)));
    own.into_iter().chain(keys)
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

    fn add_patterns(&mut self, schema: &Value, keyword: &str, rule: &Value) -> Result<(), String> {
        for (pattern, place) in patterns(keyword, rule) {
            if self.patterns.contains_key(pattern) {
                continue;
            }
            let (states, bytes) = program(pattern).map_err(|reason| {
                let schema = pointer_to(self.root, schema).unwrap_or_default();
                let place = format!("{schema}/{keyword}{place}");
                format!(
                    "the pattern `{}` at `{}` cannot be used: {reason}",
                    shown(pattern),
                    shown(&place)
                )
            })?;
            self.programs_bytes += bytes;
            if self.programs_bytes > PROGRAMS_BYTES.as_u64() {
                return Err(format!("its patterns together take more than {PROGRAMS_BYTES}"));
            }
            self.patterns.insert(pattern.to_owned(), states);
        }
        Ok(())
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
    fn spend(&mut self, steps: u64) -> Result<(), Refusal<E>> {
        let looks = self.left / STEPS_PER_LOOK;
        self.left = self.left.checked_sub(steps).ok_or_else(|| {
            format!("to check this value against it takes more than {} steps", self.limit)
        })?;
        if self.left / STEPS_PER_LOOK < looks {
            (self.may_go_on)().map_err(Refusal::Ended)?;
        }
        Ok(())
    }

    /// Counts a text that is matched against a pattern.
    fn spend_match(&mut self, pattern: &str, text: &str) -> Result<(), Refusal<E>> {
        let states = self.patterns.get(pattern).copied().unwrap_or(1);
        let cost = (text.len() as u64 + 1).saturating_mul(states);
        self.matching = self.matching.checked_sub(cost).ok_or_else(|| {
            format!("to match this value with its patterns takes more than {MATCHING} steps")
        })?;
        self.spend(1)
    }

    fn take(&mut self, at: &At<'_>, value: &Value) -> Result<(), Refusal<E>> {
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
    ) -> Result<(), Refusal<E>> {
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
fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;
    use crate::without_end;

    fn complexity(schema: &Value, value: &Value) -> Result<(), String> {
        match SchemaComplexity::new(schema)?.check("", value, &without_end) {
            Ok(_) => Ok(()),
            Err(Refusal::TooMuch(reason)) => Err(reason),
        }
    }

    #[track_caller]
    fn refused(schema: &Value, value: &Value, reason: &str) {
        let found = complexity(schema, value).unwrap_err();
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
        assert_eq!(complexity(&schema, &json!({ "x": "a" })), Ok(()));
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
    fn what_a_pattern_takes_is_counted_before_it_is_matched() {
        let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
        // Its program, for every byte of the text.
        let text = json!("a".repeat(1 << 20));
        assert_eq!(complexity(&pattern("^[a-z0-9 _-]*$"), &text), Ok(()));
        refused(&pattern("[a-z]{1,100}b"), &text, "to match this value with its patterns");
        assert_eq!(complexity(&pattern("[a-z]{1,100}b"), &json!("a".repeat(1 << 14))), Ok(()));
        // Wherever it is: beside others, for names, and for each of many.
        let short = json!("a".repeat(1 << 14));
        let all: Vec<_> = (1..200).map(|n| pattern(&format!("[a-z]{{1,{n}}}b"))).collect();
        refused(&json!({ "allOf": all }), &short, "patterns");
        let named = json!({ "a".repeat(1 << 20): 1 });
        let names = json!({ "patternProperties": { "[a-z]{1,100}b": {} } });
        refused(&names, &named, "patterns");
        refused(&json!({ "propertyNames": pattern("[a-z]{1,100}b") }), &named, "patterns");
        let many = json!({ "items": pattern("[a-z]{1,200}b") });
        refused(&many, &json!(vec!["a".repeat(100); 10_000]), "patterns");
    }

    #[test]
    fn the_programs_of_patterns_are_bounded_alone_and_together() {
        let pattern = |pattern: String| json!({ "pattern": pattern });
        refused(&pattern(r"\p{L}{1000}".into()), &json!(1), "takes more than 1 MiB when it is");
        let many: Vec<_> = (0..300).map(|n| pattern(format!("a{{{n}}}[bc]"))).collect();
        refused(
            &json!({ "allOf": many }),
            &json!(1),
            "its patterns together take more than 64 MiB",
        );
        let some: Vec<_> = (0..150).map(|n| pattern(format!("a{{{n}}}[bc]"))).collect();
        assert_eq!(complexity(&json!({ "allOf": some }), &json!("a")), Ok(()));
        let groups: Vec<_> = (1..100).map(|n| pattern(format!("^(a{{500}}){{{n}}}$"))).collect();
        refused(&json!({ "allOf": groups }), &json!(1), "its patterns together");
        // The same one is compiled once.
        let same: Vec<_> = (0..1_000).map(|_| pattern("[bc]".into())).collect();
        assert_eq!(complexity(&json!({ "allOf": same }), &json!("b")), Ok(()));
    }

    #[test]
    fn what_a_keyword_compares_is_counted() {
        let many = json!(vec![0; 100_000]);
        let options: Vec<_> = (0..30_000).collect();
        refused(&json!({ "items": { "enum": options } }), &many, "steps");
        let options: Vec<_> = (0..250).collect();
        assert_eq!(complexity(&json!({ "items": { "enum": options } }), &many), Ok(()));
        let properties: Map<_, _> = (0..9_000).map(|n| (n.to_string(), json!({}))).collect();
        let objects = json!(vec![json!({}); 10_000]);
        refused(&json!({ "items": { "properties": properties } }), &objects, "steps");
        let names: Vec<_> = (0..30_000).map(|n| n.to_string()).collect();
        refused(&json!({ "items": { "required": names } }), &objects, "steps");
        let lengths: Vec<_> = (0..2_000).map(|n| json!({ "minLength": n })).collect();
        refused(&json!({ "allOf": lengths }), &json!("a".repeat(1 << 20)), "steps");
    }

    #[test]
    fn counting_ends_when_the_caller_says_so() {
        let schema = json!({ "items": { "anyOf": [{}, {}, {}] } });
        let (complexity, value) = (SchemaComplexity::new(&schema).unwrap(), json!(vec![0; 10_000]));
        let asked = Cell::new(0);
        let until = |end: usize| {
            asked.set(0);
            let may_go_on = || {
                asked.set(asked.get() + 1);
                if asked.get() == end { Err("cancelled") } else { Ok(()) }
            };
            complexity.check("", &value, &may_go_on)
        };
        // Once for so many steps.
        let steps = until(usize::MAX).unwrap();
        assert_eq!(asked.get() as u64, steps / STEPS_PER_LOOK);
        assert!(matches!(until(3), Err(Refusal::Ended("cancelled"))));
        assert_eq!(asked.get(), 3);
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
        assert_eq!(complexity(&tree, &nested(127)), Ok(()));
        // As many as there may be.
        let many =
            json!({ "items": { "type": "object", "properties": { "id": { "minimum": 0 } } } });
        let values: Vec<Value> = (0..50_000).map(|id| json!({ "id": id })).collect();
        assert_eq!(complexity(&many, &values.into()), Ok(()));
        // References by name, by anchor and by address.
        let named = json!({
            "items": { "anyOf": [{ "$ref": "#leaf" }, { "$ref": "T0" }] },
            "$defs": {
                "leaf": { "$anchor": "leaf", "type": "string" },
                "T0": { "$id": "T0", "items": { "$ref": "T0" } },
            },
        });
        assert_eq!(complexity(&named, &json!([["a", []]])), Ok(()));
    }
}
