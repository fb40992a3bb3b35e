//! The JSON Schema, and its agreement with the parser.

use kitbag_config::{json_schema, json_schema_text};
use serde_json::Value;

use crate::support::Fixture;

fn visit(schema: &Value, path: &str, check: &mut impl FnMut(&str, &Value)) {
    check(path, schema);
    for keyword in ["properties", "definitions"] {
        for (key, value) in schema[keyword].as_object().into_iter().flatten() {
            visit(value, &format!("{path}/{key}"), check);
        }
    }
    for keyword in ["additionalProperties", "items"] {
        if schema[keyword].is_object() {
            visit(&schema[keyword], &format!("{path}/*"), check);
        }
    }
}

#[test]
fn the_schema_text_ends_in_a_newline() {
    let text = json_schema_text();
    assert!(
        text.starts_with("{\n  \"$schema\": \"http://json-schema.org/draft-07/schema#\",\n"),
        "{text}"
    );
    assert!(text.ends_with("}\n") && !text.ends_with("\n\n"));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json_schema());
    assert_eq!(json_schema_text(), text);
}

#[test]
fn keys_have_one_line_descriptions_and_are_not_nullable() {
    visit(&json_schema(), "", &mut |path, schema| {
        let is_element = path.ends_with("/*");
        let description = schema["description"].as_str();
        let is_said = description.is_some_and(|text| !text.is_empty() && !text.contains('\n'));
        assert!(is_said || is_element, "{path}: {description:?}");
        assert!(schema["default"] != Value::Null || schema.get("default").is_none(), "{path}");
        assert!(!schema.to_string().contains("null"), "{path}");
    });
}

#[test]
fn every_table_is_closed() {
    visit(&json_schema(), "", &mut |path, schema| {
        if schema.get("properties").is_some() {
            assert_eq!(schema["additionalProperties"], false, "{path}");
        }
    });
}

#[test]
fn integers_are_positive_and_have_no_format() {
    let mut count = 0;
    visit(&json_schema(), "", &mut |path, schema| {
        if schema["type"] == "integer" {
            count += 1;
            assert_eq!((&schema["minimum"], schema.get("format")), (&1.into(), None), "{path}");
        }
    });
    assert_eq!(
        count, 11,
        "`requests`, `tool_calls` and `fuel` of all tools, of one, and their ceilings; `processes`; `tool_tokens`"
    );
}

#[test]
fn unlisted_keys_are_not_part_of_the_schema() {
    assert!(!json_schema_text().contains("x-"), "{}", json_schema_text());
}

#[test]
fn documented_default_ceilings_are_in_effect() {
    let schema = json_schema();
    let default = |key: &str| {
        let pointer = format!("/properties/ceiling/properties/{key}/default");
        schema.pointer(&pointer).unwrap_or_else(|| panic!("{pointer}")).clone()
    };
    let [memory, time, output] = ["memory", "time", "output"].map(default);
    let explicit = format!("[ceiling]\nmemory = {memory}\ntime = {time}\noutput = {output}\n");
    let values = |fixture: Fixture| {
        let rows = fixture.load().rows();
        rows.iter()
            .map(|row| fixture.redact(&format!("{} = {}\n", row.key, row.value)))
            .collect::<String>()
    };
    assert_eq!(values(Fixture::empty().user(&explicit)), values(Fixture::empty()));
}

#[test]
fn documented_defaults_are_in_effect() {
    let schema = json_schema();
    let default = |pointer: &str| {
        let schema = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        schema["default"].clone()
    };
    let limits = |key: &str| default(&format!("/properties/limits/properties/{key}"));
    let tool =
        |key: &str| default(&format!("/properties/tools/additionalProperties/properties/{key}"));
    let topic = |key: &str| {
        default(&format!("/properties/knowledge/additionalProperties/properties/{key}"))
    };

    // Writing the defaults into a file changes nothing.
    let config = |text: &str| Fixture::new(text).load();
    let minimal =
        "[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n[knowledge.a]\nsubjects = \"a\"\n";
    let explicit = format!(
        "[limits]\nmemory = {}\ntime = {}\noutput = {}\n\
         [tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\nenable = {}\n\
         [[tools.t.grants.filesystem]]\nhost = {}\nguest = {}\nmode = {}\n\
         [knowledge.a]\nsubjects = \"a\"\nenable = {}\nlearned = {}\ndisabled = {}\n",
        limits("memory"),
        limits("time"),
        limits("output"),
        tool("enable"),
        tool("grants/properties/filesystem")[0]["host"],
        tool("grants/properties/filesystem")[0]["guest"],
        tool("grants/properties/filesystem/items/properties/mode"),
        topic("enable"),
        topic("learned"),
        topic("disabled"),
    );
    let values = |text: &str| {
        let fixture = Fixture::new(text);
        let rows = fixture.load().rows();
        rows.iter()
            .map(|row| fixture.redact(&format!("{} = {}\n", row.key, row.value)))
            .collect::<String>()
    };
    assert_eq!(values(&explicit), values(minimal));
    assert_eq!(config(minimal).files.len(), 1);
}
