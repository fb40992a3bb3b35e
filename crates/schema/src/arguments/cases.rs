//! Coercions by the cases in `cases/arguments.json`: arguments and a schema, and the arguments for
//! the tool or the errors.

use kitbag_base::json::{self, JsonBudget};
use kitbag_contract::UnknownArguments;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Arguments, Checked};
use crate::error::CheckError;
use crate::{Schema, without_end};

/// Checks arguments that are given as JSON text.
fn check(schema: &Value, text: &str, unknown: UnknownArguments) -> Result<Checked, Vec<String>> {
    let (value, digits) = match json::parse_exact(text.as_bytes(), JsonBudget::ARGUMENTS) {
        Ok(read) => read,
        Err(error) => return Err(vec![error.problem]),
    };
    let arguments = Arguments::exact(value, digits);
    let checked =
        Schema::from(schema.clone())
            .check_arguments(arguments, unknown, &without_end, |key| key == "_topic");
    checked.map_err(|error| match error {
        CheckError::Misfit(problems) => problems.iter().map(ToString::to_string).collect(),
        error => vec![error.to_string()],
    })
}

#[test]
fn coercions_match_the_cases() {
    let cases: Value = serde_json::from_str(include_str!("../../cases/arguments.json")).unwrap();
    let mut differences = String::new();
    for group in cases.as_array().unwrap() {
        for case in group["cases"].as_array().unwrap() {
            let text = match &case["arguments"] {
                Value::String(text) => text.clone(),
                arguments => arguments.to_string(),
            };
            let unknown = match case["unknown"].as_str() {
                Some("error") => UnknownArguments::Refuse,
                _ => UnknownArguments::Drop,
            };
            let found = match check(&group["schema"], &text, unknown) {
                Err(errors) => json!({ "errors": errors }),
                Ok(checked) => {
                    let object = Value::Object(checked.arguments);
                    let coerced: Vec<_> =
                        checked.coercions.iter().map(ToString::to_string).collect();
                    let mut found = json!({ "tool": object, "coerced": coerced });
                    if !checked.digits.is_empty() {
                        found["tool"] = checked.digits.text(&object).into();
                    }
                    found
                }
            };
            let mut expected = json!({});
            for key in ["tool", "coerced", "errors"] {
                if let Some(value) = case.get(key) {
                    expected[key] = value.clone();
                }
            }
            // `1` and `1.0` are written differently.
            let (found, expected) = (found.to_string(), expected.to_string());
            if found != expected {
                differences += &format!("{text}\nexpected: {expected}\nfound:    {found}\n\n");
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

/// Schemas in which every value has one type.
fn plain_schema() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec!["string", "integer", "number", "boolean", "null"]);
    let leaf = leaf.prop_map(|name| json!({ "type": name }));
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            prop::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|properties| json!({ "type": "object", "properties": properties })),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        Just(json!(2.0)),
        Just(json!(0.5)),
        prop::sample::select(vec!["2", "true", "x", "[1]", "{\"a\":\"1\"}", "[\"[]\"]", "2.0"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|object| object.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    /// Checking the result again changes nothing: no value is coerced after decisions depend on it.
    #[test]
    fn a_second_check_changes_nothing(argument in plain_schema(), given in value()) {
        let schema = json!({
            "type": "object", "properties": { "v": argument }, "additionalProperties": false,
        });
        let given = json!({ "v": given, "toolCallId": "1" }).to_string();
        if let Ok(checked) = check(&schema, &given, UnknownArguments::Drop) {
            let object = Value::Object(checked.arguments);
            let again = check(&schema, &object.to_string(), UnknownArguments::Refuse).unwrap();
            prop_assert_eq!(again.coercions, vec![]);
            prop_assert_eq!(Value::Object(again.arguments).to_string(), object.to_string());
        }
    }

    /// Arguments that match are not changed.
    #[test]
    fn matching_arguments_are_unchanged(argument in plain_schema(), given in value()) {
        let schema = json!({ "type": "object", "properties": { "v": argument } });
        let object = json!({ "v": given });
        // An integer with a zero fraction is written without it.
        let is_valid = jsonschema::options().build(&schema).unwrap().is_valid(&object);
        prop_assume!(is_valid && !object.to_string().contains(".0"));
        let checked = check(&schema, &object.to_string(), UnknownArguments::Drop).unwrap();
        prop_assert_eq!(Value::Object(checked.arguments), object);
    }
}
