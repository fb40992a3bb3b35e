//! Schemas of every kind, and their definitions.

use kitbag_contract::ToolName;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::disjoint::{Comparisons, are_disjoint};
use super::reference::resolve;
use super::root::object_without;
use super::strict::strict;
use super::*;
use crate::keywords::each_schema;

#[track_caller]
fn check_strict(schema: Value, expected: Value, notes: &[&str]) {
    let (strict, found) = strict(&schema).unwrap();
    assert_eq!(strict, expected);
    assert_eq!(shown_notes(&found), notes);
}

#[track_caller]
fn check_not_strict(property: Value, expected: &str) {
    let schema = json!({ "type": "object", "properties": { "x": property } });
    let note = strict(&schema).unwrap_err();
    assert_eq!(shown_notes(&[note]), [expected]);
}

fn shown_notes(notes: &[Note]) -> Vec<String> {
    notes.iter().map(|note| format!("{} {}", note.pointer, note.what)).collect()
}

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::options().build(schema).unwrap().is_valid(value)
}

#[test]
fn optional_properties_become_nullable() {
    check_strict(
        json!({
            "type": "object",
            "properties": {
                "must": { "type": "string" },
                "may": { "type": "integer", "minimum": 1 },
                "one": { "enum": ["a", "b"] },
                "const": { "const": 3 },
                "either": { "type": ["string", "array"], "items": { "type": "string" } },
                "null": { "type": ["string", "null"] },
                "refers": { "$ref": "#/definitions/size", "description": "How large." },
            },
            "required": ["must"],
            "additionalProperties": false,
            "definitions": { "size": { "type": "number" }, "unused": { "not": {} } },
        }),
        json!({
            "type": "object",
            "properties": {
                "must": { "type": "string" },
                "may": { "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }] },
                "one": { "anyOf": [{ "type": "string", "enum": ["a", "b"] }, { "type": "null" }] },
                "const": { "anyOf": [{ "type": "integer", "enum": [3] }, { "type": "null" }] },
                "either": { "anyOf": [
                    { "type": "string" },
                    { "type": "array", "items": { "type": "string" } },
                    { "type": "null" },
                ] },
                "null": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "refers": {
                    "anyOf": [{ "$ref": "#/$defs/size" }, { "type": "null" }],
                    "description": "How large.",
                },
            },
            "required": ["must", "may", "one", "const", "either", "null", "refers"],
            "additionalProperties": false,
            "$defs": { "size": { "type": "number" } },
        }),
        &[],
    );
}

#[test]
fn unsupported_annotations_move_to_the_description() {
    check_strict(
        json!({
            "type": "object",
            "properties": {
                "count": { "type": "integer", "default": 3, "description": "How many." },
                "link": { "type": "string", "format": "uri", "examples": ["a:b"], "x-ui": "wide" },
            },
        }),
        json!({
            "type": "object",
            "properties": {
                "count": { "anyOf": [{ "type": "integer" }, { "type": "null" }], "description": "How many. Default: 3." },
                "link": {
                    "anyOf": [{ "type": "string" }, { "type": "null" }],
                    "description": "Format: uri. Examples: \"a:b\".",
                },
            },
            "required": ["count", "link"],
            "additionalProperties": false,
        }),
        &[
            " accepts keys beyond its properties, but not in strict mode",
            "/properties/count/default is moved to the description, since strict mode does not support it",
            "/properties/link/format is moved to the description, since strict mode does not support it",
            "/properties/link/examples is moved to the description, since strict mode does not support it",
            "/properties/link/x-ui is omitted, since strict mode does not support it",
        ],
    );
}

#[test]
fn root_references_are_replaced_by_their_object() {
    check_strict(
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/Node",
            "definitions": { "Node": {
                "type": "object",
                "properties": { "next": { "$ref": "#/definitions/Node" } },
                "additionalProperties": false,
            } },
        }),
        json!({
            "type": "object",
            "properties": { "next": { "anyOf": [{ "$ref": "#/$defs/Node" }, { "type": "null" }] } },
            "required": ["next"],
            "additionalProperties": false,
            "$defs": { "Node": {
                "type": "object",
                "properties": {
                    "next": { "anyOf": [{ "$ref": "#/$defs/Node" }, { "type": "null" }] },
                },
                "required": ["next"],
                "additionalProperties": false,
            } },
        }),
        &[],
    );
}

#[test]
fn unsupported_keywords_are_named() {
    let check = check_not_strict;
    check(json!({}), "/properties/x accepts a value of any type, which strict mode cannot express");
    check(json!(true), "/properties/x accepts any value or none, which strict mode cannot express");
    check(
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        "/properties/x accepts keys of any name, which strict mode cannot express",
    );
    check(
        json!({ "type": "object" }),
        "/properties/x accepts keys of any name, which strict mode cannot express",
    );
    check(
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "patternProperties": {} }),
        "/properties/x/patternProperties is not supported in strict mode",
    );
    check(
        json!({ "type": "array" }),
        "/properties/x accepts elements of any type, which strict mode cannot express",
    );
    check(
        json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
        "/properties/x/items/minLength is not supported in strict mode",
    );
    check(
        json!({ "type": "string", "not": { "const": "a" } }),
        "/properties/x/not is not supported in strict mode",
    );
    check(
        json!({ "allOf": [{ "type": "string" }, { "enum": ["a"] }] }),
        "/properties/x/allOf is not supported in strict mode",
    );
    check(
        json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }),
        "/properties/x/oneOf has branches that may match together, which strict mode cannot express",
    );
    check(
        json!({ "type": "string", "anyOf": [{ "enum": ["a"] }, { "pattern": "b" }] }),
        "/properties/x/anyOf is combined with other keywords, which strict mode cannot express",
    );
    check(
        json!({ "enum": [["a"]] }),
        "/properties/x lists an array or object as a value instead of by its properties",
    );
    check(
        json!({ "$ref": "#/properties/x" }),
        "/properties/x/$ref refers to a position that strict mode does not support",
    );
    check(
        json!({ "type": "string", "pattern": "^(?=a)" }),
        "/properties/x/pattern has look-around, which strict mode does not support",
    );
    check(
        json!({ "type": "number", "exclusiveMinimum": true }),
        "/properties/x/exclusiveMinimum is not supported in strict mode",
    );
}

#[test]
fn oversized_schemas_are_not_strict() {
    let choices: Vec<_> = (0..1_001).map(|number| number.to_string()).collect();
    check_not_strict(json!({ "enum": choices }), " has 1001 choices, but strict mode allows 1000");
    let mut deep = json!({ "type": "string" });
    for _ in 0..10 {
        deep =
            json!({ "type": "object", "properties": { "x": deep }, "additionalProperties": false });
    }
    check_not_strict(deep, " has 11 levels of objects, but strict mode allows 10");
}

#[test]
fn branch_comparisons_are_bounded() {
    // Few choices that refer to the same long lists repeatedly.
    let list = |first: usize| (0..200).map(|n| format!("{}", first + n)).collect::<Vec<_>>();
    let choice = json!({ "oneOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/b" }] });
    let schema = |choices: usize| {
        let properties: Map<_, _> =
            (0..choices).map(|n| (format!("p{n}"), choice.clone())).collect();
        json!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
            "$defs": { "a": { "enum": list(10_000) }, "b": { "enum": list(20_000) } },
        })
    };
    let note = strict(&schema(3_000)).unwrap_err();
    assert!(note.what.contains("branches that may match together"), "{}", note.what);
    let mut left = Comparisons::default();
    let one = schema(1);
    assert!(are_disjoint(&one, one["properties"]["p0"]["oneOf"].as_array().unwrap(), &mut left));
}

#[test]
fn copied_branch_properties_are_bounded() {
    let properties: Map<_, _> = (0..5_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let branch = json!({ "$ref": "#/$defs/a" });
    let schema = json!({
        "anyOf": vec![branch; 10_000],
        "$defs": { "a": { "properties": properties, "required": ["p0"] } },
    });
    let object = object_without(&schema, &["anyOf"], &mut Vec::new());
    // Beyond the limit, any object is accepted.
    assert!(!object.contains_key("required"));
    assert_eq!(object["properties"].as_object().unwrap().len(), 5_000);
}

#[test]
fn searching_for_nulls_is_bounded() {
    let mut list = vec![json!({ "a": null }); 10_000];
    list.push(json!({ "b": 1 }));
    let arguments = json!({ "x": list });
    let schema = |times: usize| {
        let items = json!({ "properties": { "a": { "type": "string" } } });
        let all = vec![json!({ "properties": { "x": { "items": items } } }); times];
        json!({ "allOf": all })
    };
    // Each branch examines the whole value again.
    assert_eq!(without_nulls(&schema(5_000), arguments.clone()), arguments);
    let small = json!({ "x": [{ "a": null }] });
    assert_eq!(without_nulls(&schema(50), small), json!({ "x": [{}] }));
}

#[test]
fn disjoint_one_of_becomes_any_of() {
    let check = |branches: Value, expected: bool| {
        let schema = json!({
            "type": "object",
            "properties": { "x": { "oneOf": branches } },
            "additionalProperties": false,
            "$defs": { "text": { "type": "string" }, "ring": { "$ref": "#/$defs/ring" } },
        });
        assert_eq!(strict(&schema).is_ok(), expected, "{branches}");
    };
    let tagged = |tag: &str| {
        json!({
            "type": "object",
            "properties": { "kind": { "const": tag }, "x": { "type": "string" } },
            "required": ["kind"],
        })
    };
    let keyed = |key: &str| {
        json!({
            "type": "object",
            "properties": { key: { "type": "string" } },
            "required": [key],
            "additionalProperties": false,
        })
    };
    check(json!([{ "type": "string" }, { "type": "integer" }]), true);
    check(json!([{ "$ref": "#/$defs/text" }, { "type": "null" }]), true);
    check(json!([{ "$ref": "#/$defs/text" }, { "const": "a" }]), false);
    check(json!([{ "$ref": "#/$defs/ring" }, { "type": "null" }]), false);
    check(json!([{ "enum": ["a", "b"] }, { "const": "c" }]), true);
    check(json!([{ "enum": ["a", "b"] }, { "const": "b" }]), false);
    check(json!([{ "const": 1 }, { "const": 1.0 }]), false);
    check(json!([tagged("a"), tagged("b")]), true);
    check(json!([tagged("a"), tagged("a")]), false);
    check(json!([keyed("a"), keyed("b")]), true);
    check(json!([tagged("a"), keyed("b")]), true);
}

#[test]
fn nulls_of_absent_arguments_are_removed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "must": { "type": "string" },
            "may": { "type": "string" },
            "null": { "type": ["string", "null"] },
            "any": {},
            "a/b c": { "enum": [1, 2] },
            "node": { "$ref": "#/$defs/node" },
            "list": { "type": "array", "items": { "$ref": "#/$defs/node" } },
            "choice": { "anyOf": [
                { "type": "object", "properties": { "a": { "type": ["string", "null"] }, "b": { "type": "string", "pattern": "^b" } }, "required": ["a", "b"] },
                { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "required": ["b"] },
            ] },
        },
        "required": ["must"],
        "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
    });
    let check = |arguments: Value, expected: Value| {
        assert_eq!(without_nulls(&schema, arguments), expected);
    };
    check(
        json!({ "must": null, "may": null, "null": null, "any": null }),
        json!({ "must": null, "null": null, "any": null }),
    );
    check(json!({ "a/b c": null, "unknown": null }), json!({ "unknown": null }));
    check(json!({ "node": { "next": { "next": null } } }), json!({ "node": { "next": {} } }));
    check(json!({ "list": [null, { "next": null }] }), json!({ "list": [null, {}] }));
    check(
        json!({ "choice": { "a": null, "b": "b" } }),
        json!({ "choice": { "a": null, "b": "b" } }),
    );
    check(json!({ "choice": { "a": null, "b": "c" } }), json!({ "choice": { "b": "c" } }));
    check(json!([null]), json!([null]));
}

#[test]
fn circular_schemas_terminate() {
    let ring = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } });
    let fan = json!({ "anyOf": vec![json!({ "$ref": "#" }); 40] });
    let mut chain = Map::new();
    for index in 0..20_000 {
        chain.insert(format!("n{index}"), json!({ "$ref": format!("#/$defs/n{}", index + 1) }));
    }
    chain.insert("n20000".into(), json!({ "type": "string" }));
    let chain = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/n0" } }, "$defs": chain });
    for schema in [ring, fan, chain] {
        let _ = strict(&schema);
        let _ = object_without(&schema, &["anyOf"], &mut Vec::new());
        let value = json!({ "x": null });
        assert!(without_nulls(&schema, value).is_object());
    }
}

#[test]
fn the_root_has_the_properties_of_every_branch() {
    let check = |schema: Value, expected: Value| {
        let mut notes = Vec::new();
        let rules = object_without(&schema, &["allOf", "anyOf", "oneOf"], &mut notes);
        assert_eq!(Value::Object(rules), expected);
        assert_eq!(notes.len(), 1);
    };
    check(
        json!({ "anyOf": [
            { "type": "object", "properties": { "a": { "const": 1 }, "b": {} }, "required": ["a", "b"], "additionalProperties": false },
            { "type": "object", "properties": { "a": { "const": 2 } }, "required": ["a"], "additionalProperties": false },
            { "type": "null" },
        ] }),
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": { "a": { "anyOf": [{ "const": 1 }, { "const": 2 }] }, "b": {} },
            "required": ["a"],
        }),
    );
    check(
        json!({
            "type": "object",
            "properties": { "a": {}, "b": {} },
            "additionalProperties": false,
            "oneOf": [{ "required": ["a"] }, { "required": ["b"], "properties": { "c": {} } }],
        }),
        json!({ "type": "object", "properties": { "a": {}, "b": {} }, "additionalProperties": false }),
    );
    check(
        json!({
            "allOf": [{ "$ref": "#/$defs/base" }, { "properties": { "b": {} }, "required": ["b"] }],
            "$defs": { "base": { "properties": { "a": {} }, "required": ["a"] } },
        }),
        json!({
            "type": "object",
            "$defs": { "base": { "properties": { "a": {} }, "required": ["a"] } },
            "properties": { "a": {}, "b": {} },
            "required": ["a", "b"],
        }),
    );
}

/// A schema that strict mode can express, with few property names so that the branches of a choice
/// overlap.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": ["integer", "null"], "minimum": 0 })),
        Just(json!({ "type": "boolean", "default": true })),
        Just(json!({ "type": "null" })),
        Just(json!({ "enum": ["a", 1, null] })),
        Just(json!({ "const": "b" })),
        Just(json!({ "type": ["string", "number", "boolean"] })),
        Just(json!({ "$ref": "#/$defs/leaf", "description": "Leaf." })),
        Just(json!({ "$ref": "#/$defs/node" })),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            2 => object_schema(inner.clone()),
            1 => inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            1 => prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|branches| json!({ "anyOf": branches })),
            1 => inner.prop_map(|only| json!({ "allOf": [only], "title": "Only" })),
        ]
    })
}

fn object_schema(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let key = prop_oneof![Just("a"), Just("b"), Just("c/d e")];
    let property = (key, inner, any::<bool>());
    (prop::collection::vec(property, 1..4), any::<bool>()).prop_map(|(properties, is_closed)| {
        let mut object = json!({ "type": "object", "properties": {}, "required": [] });
        if is_closed {
            object["additionalProperties"] = false.into();
        }
        for (key, schema, is_required) in properties {
            let is_new = object["properties"].get(key).is_none();
            object["properties"][key] = schema;
            if is_required && is_new {
                object["required"].as_array_mut().unwrap().push(key.into());
            }
        }
        object
    })
}

fn root_schema() -> impl Strategy<Value = Value> {
    object_schema(schema()).prop_map(|mut root| {
        root["$defs"] = json!({
            "leaf": { "type": "string", "pattern": "^x" },
            "node": {
                "type": "object",
                "properties": { "next": { "$ref": "#/$defs/node" }, "x": { "type": "null" } },
            },
        });
        root
    })
}

/// A value of a strict schema. `None` if it would be infinite.
fn value(
    root: &Value,
    schema: &Value,
    dice: &mut impl Iterator<Item = u8>,
    depth: usize,
) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let mut roll = |sides: usize| usize::from(dice.next().unwrap_or(0)) % sides;
    if let Some(reference) = schema["$ref"].as_str() {
        return value(root, resolve(root, reference)?.1, dice, depth);
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let first = roll(branches.len());
        let mut order = branches[first..].iter().chain(&branches[..first]);
        return order.find_map(|branch| value(root, branch, dice, depth));
    }
    if let Some(choices) = schema["enum"].as_array() {
        return Some(choices[roll(choices.len())].clone());
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) if depth < 3 => &kinds[kinds.len() - 1],
        Value::Array(kinds) => &kinds[roll(kinds.len())],
        kind => kind,
    };
    Some(match kind.as_str()? {
        "string" => ["x", "xy"][roll(2)].into(),
        "integer" => roll(3).into(),
        "number" => json!(roll(3) as f64 / 2.0),
        "boolean" => (roll(2) == 0).into(),
        "null" => Value::Null,
        "array" => {
            let length = roll(3);
            (0..length).map_while(|_| value(root, &schema["items"], dice, depth)).collect()
        }
        "object" => {
            let properties = schema["properties"].as_object()?;
            let mut object = Map::new();
            for (key, schema) in properties {
                object.insert(key.clone(), value(root, schema, dice, depth)?);
            }
            object.into()
        }
        other => panic!("{other}"),
    })
}

/// Checks every requirement of strict mode.
fn check_form(schema: &Value) {
    const KNOWN: [&str; 12] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "anyOf",
        "$ref",
        "$defs",
        "description",
        "title",
        "minimum",
    ];
    let mut schema = schema.clone();
    each_schema(&mut schema, &mut |rules| {
        for key in rules.keys() {
            assert!(KNOWN.contains(&&**key) || key == "pattern", "{key}");
        }
        assert!(
            rules.contains_key("type") || rules.contains_key("anyOf") || rules.contains_key("$ref")
        );
        assert!(!rules.contains_key("$ref") || rules.len() == 1, "{rules:?}");
        if let Some(properties) = rules.get("properties") {
            let keys: Vec<_> = properties.as_object().unwrap().keys().collect();
            assert_eq!(rules["required"], json!(keys));
            assert_eq!(rules["additionalProperties"], false);
        }
    });
}

proptest! {
    #[test]
    fn strict_values_match_the_original(
        schema in root_schema(),
        dice in prop::collection::vec(any::<u8>(), 64),
    ) {
        let (strict, _) = strict(&schema).unwrap();
        prop_assert_eq!(&strict["type"], "object");
        check_form(&strict);
        let Some(value) = value(&strict, &strict, &mut dice.into_iter(), 12) else {
            return Ok(());
        };
        prop_assert!(is_valid(&strict, &value), "{strict}\n{value}");
        let given = without_nulls(&schema, value.clone());
        prop_assert!(is_valid(&schema, &given), "{schema}\n{value}\n{given}");
    }

    #[test]
    fn matching_arguments_keep_their_nulls(
        schema in root_schema(),
        dice in prop::collection::vec(any::<u8>(), 64),
    ) {
        let (strict, _) = strict(&schema).unwrap();
        if let Some(value) = value(&strict, &strict, &mut dice.into_iter(), 12)
            && is_valid(&schema, &value)
        {
            prop_assert_eq!(without_nulls(&schema, value.clone()), value);
        }
    }

    #[test]
    fn only_nulls_are_removed(schema in root_schema(), text in "[a-d]{0,8}") {
        let value = json!({ "a": text, "b": [null, text], "c/d e": { "a": text } });
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        prop_assert_eq!(keys(&without_nulls(&schema, value.clone())), keys(&value));
    }

    #[test]
    fn objects_of_every_branch_match_the_root(
        branches in prop::collection::vec(object_schema(schema()), 1..4),
        dice in prop::collection::vec(any::<u8>(), 64),
    ) {
        // All closed, so that properties of other branches are absent.
        let mut branches = branches;
        for branch in &mut branches {
            branch["additionalProperties"] = false.into();
        }
        let schema = json!({ "anyOf": branches, "$defs": {
            "leaf": { "type": "string" },
            "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } },
        } });
        let mut dice = dice.into_iter();
        let merged = Value::Object(object_without(&schema, &["anyOf"], &mut Vec::new()));
        for branch in &branches {
            let mut branch = branch.clone();
            branch["$defs"] = schema["$defs"].clone();
            let (strict, _) = strict(&branch).unwrap();
            if let Some(value) = value(&strict, &strict, &mut dice, 12) {
                let value = without_nulls(&branch, value);
                prop_assert!(is_valid(&schema, &value));
                prop_assert!(is_valid(&merged, &value), "{schema}\n{merged}\n{value}");
            }
        }
    }

    #[test]
    fn tool_names_match_every_format(name in "[a-zA-Z0-9_./: -]{1,60}") {
        // The strictest form that the interfaces accept: OpenAI and Anthropic
        // `^[a-zA-Z0-9_-]{1,64}$`, Gemini with a letter or `_` at the start.
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if ToolName::new(&*name).is_ok() {
            prop_assert!(name.len() <= 64 && name.bytes().all(is_plain));
            prop_assert!(!name.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
        }
    }
}
