use std::cell::Cell;

use serde_json::{Map, json};

use super::*;
use crate::without_end;

fn complexity(schema: &Value, value: &Value) -> Result<(), String> {
    match SchemaComplexity::new(schema.clone())?.check("", value, &without_end) {
        Ok(_) => Ok(()),
        Err(ComplexityError::TooMuch(reason)) => Err(reason),
    }
}

#[track_caller]
fn refused(schema: &Value, value: &Value, reason: &str) {
    let found = complexity(schema, value).unwrap_err();
    assert!(found.contains(reason), "{found}");
}

/// Creates a chain of definitions: `link` wraps the reference to the next one.
fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut links = Map::new();
    for index in 0..length {
        let next = json!({ "$ref": format!("#/$defs/{}", index + 1) });
        links.insert(index.to_string(), link(next));
    }
    links.insert(length.to_string(), json!({ "type": "string" }));
    json!({ "properties": { "x": { "$ref": "#/$defs/0" } }, "$defs": links })
}

/// Creates nested objects.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "x": inner }))
}

#[test]
fn references_that_branch_are_counted() {
    let schema = chain(10, |next| json!({ "anyOf": [next, next] }));
    assert_eq!(complexity(&schema, &json!({ "x": "a" })), Ok(()));
    for combine in ["anyOf", "allOf", "oneOf"] {
        // With or without the value: the schema is examined when it is read.
        let schema = chain(40, |next| json!({ combine: [next, next] }));
        refused(&schema, &json!({}), "branches into more than 1000000 schemas");
    }
    let schema = chain(40, |next| json!({ "if": next, "then": next, "else": next }));
    refused(&schema, &json!({}), "branches");
    let schema = chain(40, |next| json!({ "dependentSchemas": { "a": next, "b": next } }));
    refused(&schema, &json!({}), "branches");
    let schema = chain(40, |next| json!({ "allOf": [next], "unevaluatedProperties": next }));
    refused(&schema, &json!({ "x": "a" }), "takes more than 100128 steps");
    // For each level of the value.
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
fn deep_references_are_refused() {
    refused(&chain(10_000, |next| next), &json!({}), "more than 512 schemas");
    let own = json!({ "properties": { "x": { "$ref": "#" } } });
    refused(&own, &nested(1_000), "more than 512 schemas");
    // Such a schema would have to be read first, which takes unlimited time.
    refused(&chain(30_000, |next| next), &json!({}), "more than 40000 values");
}

#[test]
fn endless_references_are_refused() {
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
        refused(&schema, &json!({}), "endlessly");
    }
    // Refused when the schema is read, for any value.
    let schema = json!({ "$dynamicAnchor": "a", "items": { "$dynamicRef": "#a" } });
    refused(&schema, &json!("x"), "has no fixed target; use `$ref`");
    refused(&json!({ "$ref": "#/$defs/none" }), &json!({}), "none");
}

#[test]
fn matching_cost_is_counted_before_matching() {
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    // The size of the program for every byte of text.
    let text = json!("a".repeat(1 << 20));
    assert_eq!(complexity(&pattern("^[a-z0-9 _-]*$"), &text), Ok(()));
    refused(&pattern("[a-z]{1,100}b"), &text, "matching this value with its patterns");
    assert_eq!(complexity(&pattern("[a-z]{1,100}b"), &json!("a".repeat(1 << 14))), Ok(()));
    // In any position: beside other keywords, for names, and for each of many elements.
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
fn pattern_programs_are_bounded() {
    let pattern = |pattern: String| json!({ "pattern": pattern });
    refused(&pattern(r"\p{L}{1000}".into()), &json!(1), "needs more than 1 MiB when compiled");
    let many: Vec<_> = (0..300).map(|n| pattern(format!("a{{{n}}}[bc]"))).collect();
    refused(&json!({ "allOf": many }), &json!(1), "its patterns need more than 64 MiB in total");
    let some: Vec<_> = (0..150).map(|n| pattern(format!("a{{{n}}}[bc]"))).collect();
    assert_eq!(complexity(&json!({ "allOf": some }), &json!("a")), Ok(()));
    let groups: Vec<_> = (1..100).map(|n| pattern(format!("^(a{{500}}){{{n}}}$"))).collect();
    refused(&json!({ "allOf": groups }), &json!(1), "its patterns");
    // Equal patterns are compiled once.
    let same: Vec<_> = (0..1_000).map(|_| pattern("[bc]".into())).collect();
    assert_eq!(complexity(&json!({ "allOf": same }), &json!("b")), Ok(()));
}

#[test]
fn comparisons_of_keywords_are_counted() {
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
fn callers_can_end_the_counting() {
    let schema = json!({ "items": { "anyOf": [{}, {}, {}] } });
    let (complexity, value) = (SchemaComplexity::new(schema).unwrap(), json!(vec![0; 10_000]));
    let calls = Cell::new(0);
    let until = |end: usize| {
        calls.set(0);
        let may_go_on = || {
            calls.set(calls.get() + 1);
            if calls.get() == end { Err("cancelled") } else { Ok(()) }
        };
        complexity.check("", &value, &may_go_on)
    };
    // One call per block of steps.
    let steps = until(usize::MAX).unwrap();
    assert_eq!(calls.get() as u64, steps / STEPS_PER_LOOK);
    assert!(matches!(until(3), Err(ComplexityError::Ended("cancelled"))));
    assert_eq!(calls.get(), 3);
}

#[test]
fn schemas_of_real_tools_are_accepted() {
    // The maximum depth of arguments, through references and a choice.
    let tree = json!({
        "$ref": "#/$defs/tree",
        "$defs": { "tree": {
            "type": "object",
            "properties": { "x": { "anyOf": [{ "$ref": "#/$defs/tree" }, { "type": "null" }] } },
        } },
    });
    assert_eq!(complexity(&tree, &nested(127)), Ok(()));
    // The maximum number of values.
    let many = json!({ "items": { "type": "object", "properties": { "id": { "minimum": 0 } } } });
    let values: Vec<Value> = (0..50_000).map(|id| json!({ "id": id })).collect();
    assert_eq!(complexity(&many, &values.into()), Ok(()));
    // References by name, by anchor and by URI.
    let named = json!({
        "items": { "anyOf": [{ "$ref": "#leaf" }, { "$ref": "T0" }] },
        "$defs": {
            "leaf": { "$anchor": "leaf", "type": "string" },
            "T0": { "$id": "T0", "items": { "$ref": "T0" } },
        },
    });
    assert_eq!(complexity(&named, &json!([["a", []]])), Ok(()));
}

#[test]
fn translation_cost_is_counted_before_translating() {
    // The library reads the whole pattern again for each of these.
    for escape in [r"\d", r"\s", r"\cA"] {
        let pattern = |times: usize| json!({ "pattern": escape.repeat(times) });
        refused(&pattern(20_000), &json!("x"), "it has too many escapes for its length");
        assert_eq!(complexity(&pattern(20), &json!("x")), Ok(()));
    }
    let long = json!({ "pattern": format!(r"^[a-z]{{1,3}}\.{}$", "x".repeat(5_000)) });
    assert_eq!(complexity(&long, &json!("x")), Ok(()));
    // Many short patterns are counted together.
    let many = (0..30).map(|n| json!({ "pattern": format!("{n}{}", r"\d".repeat(40)) }));
    let schema = json!({ "allOf": many.collect::<Vec<_>>() });
    refused(&schema, &json!("x"), "its patterns have too many escapes in total");
}

#[test]
fn format_cost_is_counted() {
    let format = |format: &str| json!({ "$schema": "http://json-schema.org/draft-07/schema#", "format": format });
    // The library compares each name with all previous ones.
    let names: String = (0..20_000).map(|n| format!("(?<a{n}>)")).collect();
    refused(&format("regex"), &json!(names), "steps");
    let names: String = (0..100).map(|n| format!("(?<a{n}>)")).collect();
    assert_eq!(complexity(&format("regex"), &json!(names)), Ok(()));
    // Other formats read the text a fixed number of times.
    let text = json!("a".repeat(1 << 20));
    assert_eq!(complexity(&format("uri-template"), &text), Ok(()));
    let all = vec![format("email"); 1_000];
    refused(&json!({ "allOf": all }), &text, "steps");
}
