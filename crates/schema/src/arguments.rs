//! Coerces and checks arguments before any decision depends on them and before a guest receives
//! them.

#[cfg(test)]
mod cases;
mod coercion;
mod unknown_keys;
mod views;

use kitbag_base::json::{self, Digits, JsonBudget, pointer};
use kitbag_base::text::shown;
use kitbag_base::{ARGUMENTS_BYTES, ARGUMENTS_DEPTH, ByteSize};
use kitbag_contract::UnknownArguments;
use serde_json::{Map, Value};

use self::coercion::Coercer;
pub use self::coercion::Coercion;
use self::unknown_keys::remove_unknown;
use self::views::Views;
use crate::error::CheckError;
use crate::plain::fits_plainly;
use crate::problems::{ArgumentProblem, kind_of};
use crate::schema::Schema;
use crate::types::Types;

/// The arguments of a call, as they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// A JSON value, which must be an object.
    pub json: Option<Value>,
    /// Keys and values as they were typed. `key=value` is converted to the type in the tool's
    /// schema; the value of `key:=value` is JSON.
    pub pairs: Vec<(String, String)>,
    /// The digits of numbers in the JSON value.
    pub digits: Digits,
}

/// Arguments that match a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The digits of their numbers.
    pub digits: Digits,
    /// The changes that made the arguments match.
    pub coercions: Vec<Coercion>,
}

impl Arguments {
    /// Creates arguments from a JSON value.
    pub fn json(value: Value) -> Self {
        Self::exact(value, Digits::default())
    }

    /// Creates arguments from a JSON text whose numbers keep their digits.
    pub fn exact(value: Value, digits: Digits) -> Self {
        Self { json: Some(value), pairs: Vec::new(), digits }
    }
}

impl Checked {
    /// Creates arguments of the host, which no schema describes.
    pub fn as_given(arguments: Map<String, Value>) -> Self {
        Self { arguments, digits: Digits::default(), coercions: Vec::new() }
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Self::json(value)
    }
}

impl Schema {
    /// Converts arguments to the object for a tool with this input schema.
    ///
    /// Coerces values and adds defaults. Drops keys for which `is_overwritten` returns true: the
    /// host sets them itself. Calls `may_go_on` regularly; its error ends the check.
    ///
    /// # Errors
    ///
    /// [`CheckError`].
    pub fn check_arguments<E>(
        &self,
        arguments: Arguments,
        unknown: UnknownArguments,
        may_go_on: &dyn Fn() -> Result<(), E>,
        is_overwritten: impl Fn(&str) -> bool,
    ) -> Result<Checked, CheckError<E>> {
        let refused = CheckError::Misfit;
        let mut digits = arguments.digits;
        let mut object = match arguments.json {
            None => Map::new(),
            Some(Value::Object(object)) => object,
            Some(other) => {
                let message = format!("must be an object, but is {}", kind_of(&other));
                return Err(refused(vec![ArgumentProblem { pointer: String::new(), message }]));
            }
        };
        let mut problems = add_pairs(&mut object, self, arguments.pairs, &mut digits);
        object.retain(|key, _| !is_overwritten(key));
        let mut value = Value::Object(object);
        if is_deeper(&value, ARGUMENTS_DEPTH) {
            return Err(CheckError::TooDeep);
        }
        let mut coercions = Vec::new();
        if !fits_plainly(self, &value) {
            let views = Views::new(self);
            let mut coercer = Coercer::new(&views, &mut digits, &mut coercions);
            coercer.coerce(self, &mut value, &mut String::new(), 0);
            problems.append(&mut coercer.problems);
            if let (Value::Object(object), UnknownArguments::Drop) = (&mut value, unknown) {
                remove_unknown(self, &views, object, &mut coercions);
            }
            if is_deeper(&value, ARGUMENTS_DEPTH) {
                return Err(CheckError::TooDeep);
            }
        }
        let mut left = ARGUMENTS_BYTES;
        if let Err(pointer) = fill_defaults(self, &mut value, &mut left) {
            let limit = ByteSize::bytes(ARGUMENTS_BYTES as u64);
            let message = format!(
                "including the defaults of the tool's schema up to here, the arguments have more \
                 than {limit}; give fewer elements, or explicit values"
            );
            return Err(refused(vec![ArgumentProblem { pointer, message }]));
        }
        problems.extend(self.misfits(&value, may_go_on)?);
        match value {
            Value::Object(arguments) if problems.is_empty() => {
                Ok(Checked { arguments, digits, coercions })
            }
            _ => Err(refused(problems)),
        }
    }
}

/// Returns true if arrays and objects have more than `levels` levels.
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

/// Adds typed `key=value` pairs, converted to the types in the schema. For a list that is typed in
/// several parts, only the first part keeps the digits of its numbers.
fn add_pairs(
    object: &mut Map<String, Value>,
    schema: &Value,
    pairs: Vec<(String, String)>,
    digits: &mut Digits,
) -> Vec<ArgumentProblem> {
    let mut problems = Vec::new();
    let mut typed: Map<String, Value> = Map::new();
    for (key, text) in pairs {
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => match json::parse_exact(text.as_bytes(), JsonBudget::ARGUMENTS) {
                Ok((value, exact)) => {
                    digits.put(&pointer(key), exact);
                    (key.to_owned(), value)
                }
                Err(error) => {
                    let message = format!("`{}` is not JSON: {error}", shown(&text));
                    problems.push(ArgumentProblem { pointer: pointer(key), message });
                    continue;
                }
            },
            None => {
                let (value, exact) = typed_value(&schema["properties"][&key], text);
                digits.put(&pointer(&key), exact);
                (key, value)
            }
        };
        match typed.get_mut(&key) {
            // A repeated key is a list if the schema accepts one.
            Some(Value::Array(list)) if takes_list(&schema["properties"][&key]) => match value {
                Value::Array(more) => list.extend(more),
                value => list.push(value),
            },
            Some(first) if takes_list(&schema["properties"][&key]) => {
                let first = std::mem::take(first);
                typed.insert(key, Value::Array(vec![first, value]));
            }
            Some(_) => problems
                .push(ArgumentProblem { pointer: pointer(&key), message: "is repeated".into() }),
            None => {
                typed.insert(key, value);
            }
        }
    }
    for (key, value) in typed {
        if object.contains_key(&key) {
            let message = "is repeated, as `key=value` and in the JSON".into();
            problems.push(ArgumentProblem { pointer: pointer(&key), message });
        } else {
            object.insert(key, value);
        }
    }
    problems
}

/// Converts typed text to the type in the schema of its key. Text that does not match remains a
/// string, and the later check reports the problem.
fn typed_value(schema: &Value, text: String) -> (Value, Digits) {
    let types = Types::of(schema);
    // If a string is allowed, the word is a string: a shell removes the quotes.
    if types.meet(Types::STRING) {
        return (Value::String(text), Digits::default());
    }
    match json::parse_exact(text.as_bytes(), JsonBudget::ARGUMENTS) {
        Ok((value, digits)) if types.meet(Types::of_value(&value)) => (value, digits),
        // A single element of a list.
        _ if types.meet(Types::ARRAY) => {
            let (element, exact) = typed_value(&schema["items"], text);
            let mut digits = Digits::default();
            digits.put("/0", exact);
            (Value::Array(vec![element]), digits)
        }
        _ => (Value::String(text), Digits::default()),
    }
}

/// Returns true if a schema accepts a list.
fn takes_list(schema: &Value) -> bool {
    Types::of(schema) != Types::ALL && Types::of(schema).meet(Types::ARRAY)
}

/// Adds the schema's defaults for missing keys, as long as `left` bytes suffice.
///
/// # Errors
///
/// The JSON pointer of the first default that does not fit.
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::problems::{POINTER_BYTES, PROBLEMS};
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
        Arguments { pairs: pairs.collect(), ..Arguments::default() }
    }

    fn checked(
        schema: &Value,
        arguments: Arguments,
    ) -> Result<Map<String, Value>, CheckError<Infallible>> {
        let is_overwritten = |key: &str| key == "_topic";
        Schema::from(schema.clone())
            .check_arguments(arguments, UnknownArguments::Refuse, &without_end, is_overwritten)
            .map(|checked| checked.arguments)
    }

    fn check(arguments: Arguments, expected: Value) {
        let found = checked(&schema(), arguments).unwrap();
        assert_eq!(Value::Object(found), expected);
    }

    fn check_refused(arguments: Arguments, expected: &[&str]) {
        match checked(&schema(), arguments) {
            Err(CheckError::Misfit(problems)) => {
                let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
                assert_eq!(found, expected);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn typed_arguments_are_converted_by_the_schema() {
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
    fn oversized_defaults_are_named_with_their_pointer() {
        let item = json!({ "properties": { "a/b": { "default": "x".repeat(100_000) } } });
        let schema = json!({ "properties": { "list": { "items": item } } });
        let list = |elements: usize| Arguments::json(json!({ "list": vec![json!({}); elements] }));
        let found = checked(&schema, list(10)).unwrap();
        assert_eq!(found["list"][9]["a/b"].as_str().unwrap().len(), 100_000);
        let error = checked(&schema, list(1_000)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "does not match\n  `/list/10/a~1b`: including the defaults of the tool's \
             schema up to here, the arguments have more than 1 MiB; give fewer elements, or explicit values"
        );
    }

    #[test]
    fn repeated_mistakes_are_reported_a_hundred_times() {
        let key = "k".repeat(10_000);
        let flat = json!({ "properties": { "a": {} }, "additionalProperties": false });
        let mut schema = json!({ "properties": { "flat": flat } });
        schema["properties"][&key] = json!({ "items": { "type": "string" } });
        let many = |value: Value| match checked(&schema, value.into()) {
            Err(CheckError::Misfit(problems)) => problems,
            other => panic!("{other:?}"),
        };
        let problems = many(json!({ key: vec![true; 300] }));
        assert_eq!(problems.len(), PROBLEMS + 1);
        assert!(
            problems.iter().all(|problem| problem.pointer.len() <= POINTER_BYTES + '…'.len_utf8())
        );
        assert_eq!(problems[PROBLEMS].to_string(), "further problems are not listed");
        let keys: Map<_, _> = (0..1_000).map(|key| (key.to_string(), json!(1))).collect();
        assert_eq!(many(json!({ "flat": keys })).len(), PROBLEMS + 1);
    }

    #[test]
    fn every_problem_has_its_pointer() {
        check_refused(
            Arguments::json(json!({
                "count": "three", "mode": "quick", "nested": { "sise": 1 }, "colour": 1, "tags": [true],
            })),
            &[
                "`/count`: must be an integer, but is the string `three`",
                "`/mode`: is `quick`, but must be `fast` or `slow`",
                "`/nested/sise`: is unknown; did you mean `size`?",
                "`/tags/0`: must be a string, but is the boolean true",
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
        check_refused(pairs(&[("path", "a"), ("path", "b")]), &["`/path`: is repeated"]);
        check_refused(
            pairs(&[("path", "a"), ("ids:", "[1")]),
            &["`/ids`: `[1` is not JSON: EOF while parsing a list at line 1 column 2"],
        );
    }

    #[test]
    fn reported_problems_are_bounded() {
        let check = |schema: &Value, value: Value| match checked(schema, Arguments::json(value)) {
            Err(CheckError::Misfit(problems)) => problems,
            other => panic!("{other:?}"),
        };
        // A hundred problems, and a note that there are more.
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
        // Only the first problem of a large value, and no position, since every branch of a choice
        // would be kept.
        let elements = |items: Value| json!({ "properties": { "x": { "items": items } } });
        let much = json!({ "x": vec![1; 200_000] });
        let problems = check(&elements(json!({ "minimum": 2 })), much.clone());
        assert_eq!((problems.len(), &*problems[0].pointer), (2, "/x/0"));
        let choice = elements(json!({ "anyOf": [{ "minimum": 2 }, { "type": "string" }] }));
        let problems = check(&choice, much);
        assert_eq!(
            problems[0].to_string(),
            "does not match, and is too large to find the position"
        );
    }

    #[test]
    fn overwritten_keys_are_dropped() {
        let arguments = Arguments::json(json!({ "path": "x", "_topic": { "id": "other" } }));
        let found = checked(&schema(), arguments).unwrap();
        assert!(!found.contains_key("_topic"));
    }

    #[test]
    fn invalid_schemas_are_named() {
        let error = checked(&json!({ "type": "nonsense" }), Arguments::default());
        assert!(matches!(error, Err(CheckError::Schema(_))), "{error:?}");
    }

    #[test]
    fn schemas_cannot_make_the_host_fetch() {
        let schema = json!({ "$ref": "http://127.0.0.1:1/schema.json" });
        let error = checked(&schema, Arguments::default());
        assert!(matches!(error, Err(CheckError::Schema(_))), "{error:?}");
    }

    /// Valid and invalid values for `schema`.
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
        fn plain_matches_are_valid(value in arguments()) {
            let is_valid = jsonschema::options().build(&schema()).unwrap().is_valid(&value);
            prop_assert!(is_valid || !fits_plainly(&schema(), &value), "{value}");
        }
    }

    #[test]
    fn usual_arguments_match_plainly() {
        let call = json!({ "path": "x", "count": 1, "ids": [1], "mode": "fast", "nested": {} });
        assert!(fits_plainly(&schema(), &call));
        assert!(!fits_plainly(&json!({ "type": "string", "pattern": "a" }), &json!("a")));
        assert!(!fits_plainly(&json!({ "additionalProperties": {} }), &json!({ "a": 1 })));
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_has_problems(key in ".{0,20}", text in ".{0,40}") {
            let _ = checked(&schema(), pairs(&[(&key, &text), ("path", "x")]));
        }
    }
}
