//! Arguments, checked before a guest sees them.

use std::collections::BTreeSet;
use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use kitbag_contract::json::{self, JsonBudget};
use kitbag_contract::text::{alternatives, nearest, shown};
use kitbag_contract::{ARGUMENTS_BYTES, ARGUMENTS_DEPTH, ByteSize};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::complexity::{self, Refusal, SchemaComplexity};
use crate::error::{CheckError, SchemaError};

/// How many problems are told of one value. A value with more has one mistake many
/// times.
const PROBLEMS: usize = 100;

/// How many bytes the pointers to all values have at most where all problems are
/// looked for: the library holds one for each problem before it tells the first.
const ALL_POINTER_BYTES: usize = 4 << 20;

/// The longest pointer of a problem, in bytes: keys are the caller's.
const POINTER_BYTES: usize = 1 << 10;

/// Up to how many evaluations everything that is wrong is looked for: the library
/// keeps all of it in memory.
const STEPS_IN_FULL: u64 = 100_000;

/// The size of the largest value that a message repeats.
const SHOWN_SIZE: u64 = 64;

/// How many steps it is tried whether a value plainly fits.
const PLAIN_STEPS: u64 = 1_000_000;

/// The arguments of a call, as they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// A JSON value, which has to be an object.
    pub json: Option<Value>,
    /// Keys and values as they were typed. `key=value` becomes what the tool's
    /// schema says; `key:=value` is JSON.
    pub pairs: Vec<(String, String)>,
}

/// Something that is wrong with an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArgumentProblem {
    /// Where, as a JSON pointer; empty for the arguments as a whole.
    pub pointer: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Arguments {
    /// Arguments that are JSON already.
    pub fn json(value: Value) -> Self {
        Self { json: Some(value), pairs: Vec::new() }
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Self::json(value)
    }
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pointer {
            "" => write!(f, "{}", self.message),
            pointer => write!(f, "`{}`: {}", shown(pointer), self.message),
        }
    }
}

/// Turns arguments into the object that a tool with this schema gets.
///
/// Defaults are filled in. Keys for which `is_overwritten` holds are dropped:
/// the host sets them itself. `may_go_on` is asked now and then, and its error ends
/// the check.
///
/// # Errors
///
/// [`CheckError`].
pub fn check<E>(
    schema: &Value,
    arguments: Arguments,
    may_go_on: &dyn Fn() -> Result<(), E>,
    is_overwritten: impl Fn(&str) -> bool,
) -> Result<Map<String, Value>, CheckError<E>> {
    let refused = CheckError::Misfit;
    let mut object = match arguments.json {
        None => Map::new(),
        Some(Value::Object(object)) => object,
        Some(other) => {
            let message = format!("must be an object, but is {}", kind_of(&other));
            return Err(refused(vec![ArgumentProblem { pointer: String::new(), message }]));
        }
    };
    let mut problems = add_pairs(&mut object, schema, arguments.pairs);
    object.retain(|key, _| !is_overwritten(key));
    let mut value = Value::Object(object);
    if is_deeper(&value, ARGUMENTS_DEPTH) {
        return Err(CheckError::TooDeep);
    }
    let mut left = ARGUMENTS_BYTES;
    if let Err(pointer) = fill_defaults(schema, &mut value, &mut left) {
        let limit = ByteSize::bytes(ARGUMENTS_BYTES as u64);
        let message = format!(
            "with the defaults of the tool's schema up to here the arguments have more than \
             {limit}; give fewer elements, or values of your own"
        );
        return Err(refused(vec![ArgumentProblem { pointer, message }]));
    }
    problems.extend(misfits(schema, &value, may_go_on)?);
    match value {
        Value::Object(object) if problems.is_empty() => Ok(object),
        _ => Err(refused(problems)),
    }
}

/// Everything in which a value does not fit a schema of a tool's.
///
/// # Errors
///
/// [`CheckError::Schema`], where it is none, [`CheckError::Ended`] with the error of
/// `may_go_on`.
pub fn misfits<E>(
    schema: &Value,
    value: &Value,
    may_go_on: &dyn Fn() -> Result<(), E>,
) -> Result<Vec<ArgumentProblem>, CheckError<E>> {
    let mut problems = Vec::new();
    if fits_plainly(schema, value) {
        return Ok(problems);
    }
    may_go_on().map_err(CheckError::Ended)?;
    let (complexity, validator) = validator(schema)?;
    may_go_on().map_err(CheckError::Ended)?;
    let steps = complexity.check("", value, may_go_on).map_err(|refusal| match refusal {
        Refusal::TooMuch(reason) => CheckError::Schema(SchemaError { reason }),
        Refusal::Ended(error) => CheckError::Ended(error),
    })?;
    let fits = validator.is_valid(value);
    may_go_on().map_err(CheckError::Ended)?;
    if fits {
        return Ok(problems);
    }
    let is_bounded = steps <= STEPS_IN_FULL && pointer_bytes(value, 0) <= ALL_POINTER_BYTES;
    let all = is_bounded.then(|| validator.iter_errors(value)).into_iter().flatten();
    let first = match is_bounded || complexity.has_choices() {
        true => None,
        false => validator.validate(value).err(),
    };
    for error in all.chain(first) {
        may_go_on().map_err(CheckError::Ended)?;
        explain(&error, schema, &mut problems);
        if problems.len() > PROBLEMS || !is_bounded {
            problems.truncate(PROBLEMS);
            let message = "further problems are not listed".into();
            problems.push(ArgumentProblem { pointer: String::new(), message });
            break;
        }
    }
    if problems.is_empty() {
        let message = "does not fit, and is too large to say where".into();
        problems.push(ArgumentProblem { pointer: String::new(), message });
    }
    may_go_on().map_err(CheckError::Ended)?;
    Ok(problems)
}

/// How many bytes the pointers to a value and all within it have, where that to the
/// value itself has `own`.
fn pointer_bytes(value: &Value, own: usize) -> usize {
    // An index has as many digits as a list of so many values can have.
    const INDEX: usize = 8;
    own + match value {
        Value::Array(elements) => {
            elements.iter().map(|element| pointer_bytes(element, own + INDEX)).sum::<usize>()
        }
        Value::Object(object) => {
            let within = object.iter();
            within.map(|(key, value)| pointer_bytes(value, own + 1 + key.len())).sum()
        }
        _ => 0,
    }
}

/// Reads a schema of a tool's.
///
/// # Errors
///
/// [`SchemaError`], where it is none or too large.
pub(crate) fn validator(
    schema: &Value,
) -> Result<(SchemaComplexity<'_>, jsonschema::Validator), SchemaError> {
    let read = || {
        let complexity = SchemaComplexity::new(schema)?;
        let built = complexity::options()
            .build(schema)
            .map_err(|error| shown(&error.to_string()).to_string())?;
        Ok((complexity, built))
    };
    read().map_err(|reason| SchemaError { reason })
}

/// Reads a schema of a tool's, as a check of a value does. Patterns take time to
/// compile.
///
/// # Errors
///
/// [`SchemaError`], where it is none or too large.
pub fn check_schema(schema: &Value) -> Result<(), SchemaError> {
    // What configuration and most tools write is seen to be one at a glance.
    match is_plain_schema(schema) {
        true => Ok(()),
        false => validator(schema).map(drop),
    }
}

/// Looks whether the schema of a tool's arguments has the form of one, and the type of
/// an object. Its patterns and references are for [`check_schema`] to read.
///
/// # Errors
///
/// [`SchemaError`], where it has not.
pub fn check_input_form(schema: &Value) -> Result<(), SchemaError> {
    if !schema["type"].is_null() && !allows(schema, "object") {
        let reason = "its `type` is not `object`, and arguments are an object";
        return Err(SchemaError { reason: reason.into() });
    }
    check_form(schema)
}

/// Looks whether a schema has the form of one. Its patterns and references are for
/// [`check_schema`] to read.
///
/// # Errors
///
/// [`SchemaError`], where it has not.
pub fn check_form(schema: &Value) -> Result<(), SchemaError> {
    // Other drafts are for the library to read.
    let is_newest = schema["$schema"]
        .as_str()
        .is_none_or(|draft| draft.contains("json-schema.org/draft/2020-12"));
    match is_plain_schema(schema) || !is_newest || jsonschema::draft202012::meta::is_valid(schema) {
        true => Ok(()),
        false => {
            let reason = "a keyword in it has a value that it cannot have";
            Err(SchemaError { reason: reason.into() })
        }
    }
}

/// Whether a schema is plainly one: of keywords that stand for nothing more than what
/// is looked at here. `false` means only that the library has to decide.
fn is_plain_schema(schema: &Value) -> bool {
    /// Far below what a schema may have at all.
    const KEYWORDS: usize = 1_000;
    is_plain(schema, &mut KEYWORDS.clone())
}

fn is_plain(schema: &Value, left: &mut usize) -> bool {
    let Value::Object(rules) = schema else { return false };
    let Some(rest) = left.checked_sub(rules.len() + 1) else { return false };
    *left = rest;
    let is_kind = |kind: &Value| {
        let kinds = ["string", "number", "integer", "boolean", "array", "object", "null"];
        kind.as_str().is_some_and(|kind| kinds.contains(&kind))
    };
    rules.iter().all(|(keyword, rule)| match (&**keyword, rule) {
        ("type", kind) => is_kind(kind),
        ("properties", Value::Object(properties)) => {
            properties.values().all(|schema| is_plain(schema, left))
        }
        ("items", items) => is_plain(items, left),
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

/// Whether a value plainly fits a schema, so that nothing more has to be looked
/// at. `false` means only that the library has to decide.
///
/// The library first compiles the schema of schemas, which takes several times
/// as long as a whole call does without it. What configuration and most tools
/// write needs no more than these keywords (JSON Schema 2020-12).
pub(crate) fn fits_plainly(schema: &Value, value: &Value) -> bool {
    fits_within(schema, value, &mut { PLAIN_STEPS })
}

/// As [`fits_plainly`], in no more steps than are left.
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
        ("type", Value::String(kind), _) => is_of_type(value, kind),
        ("type", Value::Array(kinds), _) => {
            kinds.iter().any(|kind| kind.as_str().is_some_and(|kind| is_of_type(value, kind)))
        }
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
        // These say nothing about a value of another type.
        ("properties", Value::Object(_), _)
        | ("required", Value::Array(_), _)
        | ("additionalProperties", Value::Bool(_), _)
        | ("items", Value::Object(_), _)
        | ("title" | "description" | "default", ..) => true,
        _ => false,
    })
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || (kind == "integer" && !number.is_f64()),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}

/// Whether arrays and objects nest deeper than so many levels.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return matches!(value, Value::Array(_) | Value::Object(_));
    };
    match value {
        Value::Array(elements) => elements.iter().any(|element| is_deeper(element, below)),
        Value::Object(object) => object.values().any(|value| is_deeper(value, below)),
        _ => false,
    }
}

/// Adds what was typed as `key=value`, in the type that the schema wants.
fn add_pairs(
    object: &mut Map<String, Value>,
    schema: &Value,
    pairs: Vec<(String, String)>,
) -> Vec<ArgumentProblem> {
    let mut problems = Vec::new();
    let mut typed: Map<String, Value> = Map::new();
    for (key, text) in pairs {
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => match json::parse(text.as_bytes(), JsonBudget::ARGUMENTS) {
                Ok(value) => (key.to_owned(), value),
                Err(error) => {
                    let message = format!("`{}` is not JSON: {error}", shown(&text));
                    problems.push(ArgumentProblem { pointer: pointer(key), message });
                    continue;
                }
            },
            None => {
                let value = coerce(&schema["properties"][&key], text);
                (key, value)
            }
        };
        match typed.get_mut(&key) {
            // A key that is repeated is a list where the schema takes one.
            Some(Value::Array(list)) if allows(&schema["properties"][&key], "array") => match value
            {
                Value::Array(more) => list.extend(more),
                value => list.push(value),
            },
            Some(first) if allows(&schema["properties"][&key], "array") => {
                let first = std::mem::take(first);
                typed.insert(key, Value::Array(vec![first, value]));
            }
            Some(_) => problems
                .push(ArgumentProblem { pointer: pointer(&key), message: "is given twice".into() }),
            None => {
                typed.insert(key, value);
            }
        }
    }
    for (key, value) in typed {
        if object.contains_key(&key) {
            let message = "is given twice, as `key=value` and in the JSON".into();
            problems.push(ArgumentProblem { pointer: pointer(&key), message });
        } else {
            object.insert(key, value);
        }
    }
    problems
}

/// Reads a typed text as what the schema of its key takes. What does not fit
/// stays text, and the check that follows says what is wrong with it.
fn coerce(schema: &Value, text: String) -> Value {
    // Where a text is allowed, a text is meant: nobody quotes it on a shell.
    if schema["type"].is_null() || allows(schema, "string") {
        return Value::String(text);
    }
    let parsed = json::parse(text.as_bytes(), JsonBudget::ARGUMENTS).ok();
    match parsed {
        Some(value) if allows_value(schema, &value) => value,
        // One element of a list.
        _ if allows(schema, "array") => Value::Array(vec![coerce(&schema["items"], text)]),
        _ => Value::String(text),
    }
}

fn allows(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(allowed) => allowed == kind,
        Value::Array(allowed) => allowed.iter().any(|allowed| allowed == kind),
        _ => false,
    }
}

fn allows_value(schema: &Value, value: &Value) -> bool {
    match value {
        Value::Null => allows(schema, "null"),
        Value::Bool(_) => allows(schema, "boolean"),
        Value::Number(number) => {
            allows(schema, "number") || (allows(schema, "integer") && !number.is_f64())
        }
        Value::String(_) => false,
        Value::Array(_) => allows(schema, "array"),
        Value::Object(_) => allows(schema, "object"),
    }
}

/// Adds the defaults that a schema names for keys that are not there, as long as
/// their length is `left`.
///
/// # Errors
///
/// The JSON pointer of the first one for which there is no room.
fn fill_defaults(schema: &Value, value: &mut Value, left: &mut usize) -> Result<(), String> {
    match value {
        Value::Object(object) => {
            let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
            for (key, schema) in properties {
                let at = |rest: String| format!("{}{rest}", pointer(key));
                if let Some(value) = object.get_mut(key) {
                    fill_defaults(schema, value, left).map_err(at)?;
                } else if let Some(default) = schema.get("default") {
                    let length = key.len() + json::length(default);
                    *left = left.checked_sub(length).ok_or_else(|| at(String::new()))?;
                    object.insert(key.clone(), default.clone());
                }
            }
        }
        Value::Array(elements) => {
            let schema = &schema["items"];
            for (index, element) in elements.iter_mut().enumerate() {
                fill_defaults(schema, element, left).map_err(|rest| format!("/{index}{rest}"))?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Says what is wrong in our words, since the library's repeat whole values.
fn explain(
    error: &jsonschema::ValidationError<'_>,
    schema: &Value,
    problems: &mut Vec<ArgumentProblem>,
) {
    let place = error.instance_path().as_str().to_owned();
    let mut push = |mut pointer: String, message: String| {
        if pointer.len() > POINTER_BYTES {
            pointer.truncate(pointer.floor_char_boundary(POINTER_BYTES));
            pointer.push('…');
        }
        problems.push(ArgumentProblem { pointer, message });
    };
    let one = |text: &Value| match text {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            push(format!("{place}{}", pointer(&one(property))), "is missing".into());
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_keys(schema, &place);
            for key in unexpected.iter().take(PROBLEMS + 1) {
                let hint = match nearest(key, known.iter().map(String::as_str)) {
                    Some(near) => format!("; did you mean `{}`?", shown(near)),
                    None if known.is_empty() => "; it takes none".into(),
                    None => format!("; known: {}", alternatives(&known)),
                };
                push(format!("{place}{}", pointer(key)), format!("is unknown{hint}"));
            }
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(kind) => article(&kind.to_string()),
                TypeKind::Multiple(kinds) => {
                    let kinds: Vec<_> =
                        kinds.iter().map(|kind| article(&kind.to_string())).collect();
                    kinds.join(" or ")
                }
            };
            push(place, format!("must be {expected}, but is {}", kind_of(error.instance())));
        }
        ValidationErrorKind::Enum { options } => {
            // One more than are shown.
            let options = options.as_array().into_iter().flatten().take(11);
            let options: Vec<_> = options.map(one).collect();
            let given = shown(&one(error.instance())).to_string();
            push(place, format!("is `{given}`, but must be {}", alternatives(&options)));
        }
        _ if complexity::size(error.instance()) > SHOWN_SIZE => {
            push(place, shown(&error.masked().to_string()).to_string());
        }
        _ => push(place, shown(&error.to_string()).to_string()),
    }
}

/// The keys that the schema knows at a place in the arguments.
fn known_keys(schema: &Value, place: &str) -> Vec<String> {
    let mut here = schema;
    for segment in place.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        here = match here["properties"].get(&key) {
            Some(schema) => schema,
            None => &here["items"],
        };
    }
    here["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

/// A value's type with its article, and the value where it is short.
fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(value) => format!("the number {value}"),
        Value::String(value) => format!("the string `{}`", shown(value)),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    if kind == "null" { kind.into() } else { format!("{article} {kind}") }
}

/// A key as one segment of a JSON pointer (RFC 6901).
pub(crate) fn pointer(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::without_end;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "count": { "type": "integer", "default": 3 },
                "ratio": { "type": "number" },
                "deep": { "type": "boolean" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "ids": { "type": "array", "items": { "type": "integer" } },
                "any": { "type": ["string", "array"], "items": { "type": "string" } },
                "mode": { "enum": ["fast", "slow"], "type": "string" },
                "nested": {
                    "type": "object",
                    "properties": { "size": { "type": "integer", "default": 1 } },
                    "additionalProperties": false,
                },
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    fn pairs(pairs: &[(&str, &str)]) -> Arguments {
        let pairs = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        Arguments { json: None, pairs: pairs.collect() }
    }

    fn check(arguments: Arguments, expected: Value) {
        let found = super::check(&schema(), arguments, &without_end, |_| false).unwrap();
        assert_eq!(Value::Object(found), expected);
    }

    fn check_refused(arguments: Arguments, expected: &[&str]) {
        match super::check(&schema(), arguments, &without_end, |_| false) {
            Err(CheckError::Misfit(problems)) => {
                let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
                assert_eq!(found, expected);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn typed_arguments_become_what_the_schema_says() {
        check(
            pairs(&[("path", "1"), ("count", "5"), ("ratio", "0.5"), ("deep", "true")]),
            json!({ "path": "1", "count": 5, "ratio": 0.5, "deep": true }),
        );
        check(
            pairs(&[("path", "x"), ("tags", "a"), ("tags", "2"), ("ids", "1"), ("ids", "[2,3]")]),
            json!({ "path": "x", "tags": ["a", "2"], "ids": [1, 2, 3], "count": 3 }),
        );
        check(
            pairs(&[("path", "x"), ("any", "a"), ("any", "b"), ("nested:", r#"{"size":2}"#)]),
            json!({ "path": "x", "any": ["a", "b"], "nested": { "size": 2 }, "count": 3 }),
        );
    }

    #[test]
    fn defaults_are_filled_in_at_every_depth() {
        check(
            Arguments::json(json!({ "path": "x", "nested": {} })),
            json!({ "path": "x", "nested": { "size": 1 }, "count": 3 }),
        );
    }

    #[test]
    fn defaults_count_while_they_are_filled_in_and_the_place_is_named() {
        let item = json!({ "properties": { "a/b": { "default": "x".repeat(100_000) } } });
        let schema = json!({ "properties": { "list": { "items": item } } });
        let list = |elements: usize| Arguments::json(json!({ "list": vec![json!({}); elements] }));
        let found = super::check(&schema, list(10), &without_end, |_| false).unwrap();
        assert_eq!(found["list"][9]["a/b"].as_str().unwrap().len(), 100_000);
        let error = super::check(&schema, list(1_000), &without_end, |_| false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "does not fit\n  `/list/10/a~1b`: with the defaults of the tool's schema \
             up to here the arguments have more than 1 MiB; give fewer elements, or values of your \
             own"
        );
    }

    #[test]
    fn the_same_mistake_many_times_is_told_a_hundred_times() {
        let key = "k".repeat(10_000);
        let flat = json!({ "properties": { "a": {} }, "additionalProperties": false });
        let mut schema = json!({ "properties": { "flat": flat } });
        schema["properties"][&key] = json!({ "items": { "type": "string" } });
        let many = |value: Value| match super::check(&schema, value.into(), &without_end, |_| false)
        {
            Err(CheckError::Misfit(problems)) => problems,
            other => panic!("{other:?}"),
        };
        let problems = many(json!({ key: vec![1; 300] }));
        assert_eq!(problems.len(), PROBLEMS + 1);
        assert!(
            problems.iter().all(|problem| problem.pointer.len() <= POINTER_BYTES + '…'.len_utf8())
        );
        assert_eq!(problems[PROBLEMS].to_string(), "further problems are not listed");
        let keys: Map<_, _> = (0..1_000).map(|key| (key.to_string(), json!(1))).collect();
        assert_eq!(many(json!({ "flat": keys })).len(), PROBLEMS + 1);
    }

    #[test]
    fn everything_wrong_is_named_with_its_place() {
        check_refused(
            Arguments::json(json!({
                "count": "three", "mode": "quick", "nested": { "sise": 1 }, "colour": 1, "tags": [1],
            })),
            &[
                "`/count`: must be an integer, but is the string `three`",
                "`/mode`: is `quick`, but must be `fast` or `slow`",
                "`/nested/sise`: is unknown; did you mean `size`?",
                "`/tags/0`: must be a string, but is the number 1",
                "`/colour`: is unknown; known: `path`, `count`, `ratio`, `deep`, `tags`, `ids`, `any`, \
                 `mode` or `nested`",
                "`/path`: is missing",
            ],
        );
        check_refused(Arguments::json(json!([])), &["must be an object, but is an array"]);
        check_refused(
            pairs(&[("path", "x"), ("count", "many")]),
            &["`/count`: must be an integer, but is the string `many`"],
        );
        check_refused(pairs(&[("path", "a"), ("path", "b")]), &["`/path`: is given twice"]);
        check_refused(
            pairs(&[("path", "a"), ("ids:", "[1")]),
            &["`/ids`: `[1` is not JSON: EOF while parsing a list at line 1 column 2"],
        );
    }

    #[test]
    fn what_is_wrong_is_named_within_bounds() {
        let check = |schema: &Value, value: Value| match super::check(
            schema,
            Arguments::json(value),
            &without_end,
            |_| false,
        ) {
            Err(CheckError::Misfit(problems)) => problems,
            other => panic!("{other:?}"),
        };
        // A hundred, and that there are more.
        let schema = json!({ "properties": { "a": {} }, "additionalProperties": false });
        let unknown: Map<_, _> = (0..1_000).map(|n| (n.to_string(), json!(1))).collect();
        let problems = check(&schema, Value::Object(unknown));
        assert_eq!(problems.len(), PROBLEMS + 1);
        assert_eq!(problems[PROBLEMS].to_string(), "further problems are not listed");
        // A long value is not repeated.
        let all: Vec<_> = (0..50).map(|n| json!({ "maxLength": n })).collect();
        let schema = json!({ "properties": { "x": { "allOf": all } } });
        let problems = check(&schema, json!({ "x": "a".repeat(100_000) }));
        assert_eq!(problems[0].to_string(), "`/x`: value is longer than 0 characters");
        // The first of what is wrong in much, and no place where each branch of a
        // choice would be kept.
        let elements = |items: Value| json!({ "properties": { "x": { "items": items } } });
        let much = json!({ "x": vec![1; 200_000] });
        let problems = check(&elements(json!({ "minimum": 2 })), much.clone());
        assert_eq!((problems.len(), &*problems[0].pointer), (2, "/x/0"));
        let choice = elements(json!({ "anyOf": [{ "minimum": 2 }, { "type": "string" }] }));
        let problems = check(&choice, much);
        assert_eq!(problems[0].to_string(), "does not fit, and is too large to say where");
    }

    #[test]
    fn what_the_host_sets_itself_is_dropped() {
        let arguments = Arguments::json(json!({ "path": "x", "_topic": { "id": "other" } }));
        let found =
            super::check(&schema(), arguments, &without_end, |key| key == "_topic").unwrap();
        assert!(!found.contains_key("_topic"));
    }

    #[test]
    fn a_schema_that_is_none_is_named() {
        let error = super::check(
            &json!({ "type": "nonsense" }),
            Arguments::default(),
            &without_end,
            |_| false,
        );
        assert!(matches!(error, Err(CheckError::Schema(_))), "{error:?}");
    }

    #[test]
    fn a_schema_cannot_make_the_host_fetch_anything() {
        let schema = json!({ "$ref": "http://127.0.0.1:1/schema.json" });
        let error = super::check(&schema, Arguments::default(), &without_end, |_| false);
        assert!(matches!(error, Err(CheckError::Schema(_))), "{error:?}");
    }

    /// Values that have something to do with `schema`, right and wrong.
    fn arguments() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (-3i64..3).prop_map(Value::from),
            Just(json!(0.5)),
            Just(json!(1.0)),
            prop_oneof![Just("fast"), Just("x")].prop_map(Value::from),
        ];
        let key = prop_oneof![
            Just("path"),
            Just("count"),
            Just("ratio"),
            Just("deep"),
            Just("tags"),
            Just("ids"),
            Just("any"),
            Just("mode"),
            Just("nested"),
            Just("size"),
            Just("other"),
        ];
        leaf.prop_recursive(3, 24, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..5).prop_map(|pairs| {
                    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_plainly_fits_is_valid(value in arguments()) {
            let is_valid = jsonschema::options().build(&schema()).unwrap().is_valid(&value);
            prop_assert!(is_valid || !fits_plainly(&schema(), &value), "{value}");
        }
    }

    #[test]
    fn what_is_usually_called_fits_plainly() {
        let call = json!({ "path": "x", "count": 1, "ids": [1], "mode": "fast", "nested": {} });
        assert!(fits_plainly(&schema(), &call));
        assert!(!fits_plainly(&json!({ "type": "string", "pattern": "a" }), &json!("a")));
        assert!(!fits_plainly(&json!({ "additionalProperties": {} }), &json!({ "a": 1 })));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_check_fail_in_another_way(key in ".{0,20}", text in ".{0,40}") {
            let _ = super::check(&schema(), pairs(&[(&key, &text), ("path", "x")]), &without_end, |_| false);
        }
    }
}
