//! The arguments that a local tool takes.

use kitbag_config::{LocalTool, ToolSource};
use serde_json::{Value, json};

use crate::support::{Fixture, check_problems};

const HEAD: &str = "[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n[tools.t.parameters]\n";

fn local(config: &str) -> LocalTool {
    match &Fixture::new(config).load().tools["t"].source.value {
        ToolSource::Local(local) => local.clone(),
        _ => panic!("not local"),
    }
}

/// Compares the JSON Schema of these parameters, the order of keys included.
#[track_caller]
fn check(parameters: &str, expected: Value) {
    let schema = local(&format!("{HEAD}{parameters}")).parameters.unwrap().input_schema();
    assert_eq!(schema.to_string(), expected.to_string());
}

/// Compares what is wrong with these parameters; the first line is the fifth.
#[track_caller]
fn check_refused(parameters: &str, expected: &[&str]) {
    check_problems(&format!("{HEAD}{parameters}"), expected);
}

#[test]
fn parameters_become_a_schema_in_the_order_of_the_file() {
    check(
        r#"
path = { type = "string", description = "File", required = true }
all = { type = "boolean", default = false }
[tools.t.parameters.filter]
type = "object"
required = true
[tools.t.parameters.filter.properties]
names = { type = "array", items = { type = "string", enum = ["b", "a"] }, required = true, default = ["a"] }
deep = { type = "object", properties = { n = { type = "integer", enum = [1, 2], default = 2 } } }
any = { type = "object" }
[tools.t.parameters.ratio]
type = "number"
default = 1
"#,
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "File" },
                "all": { "type": "boolean", "default": false },
                "filter": {
                    "type": "object",
                    "properties": {
                        "names": {
                            "type": "array",
                            "default": ["a"],
                            "items": { "type": "string", "enum": ["b", "a"] },
                        },
                        "deep": {
                            "type": "object",
                            "properties": { "n": { "type": "integer", "enum": [1, 2], "default": 2 } },
                            "required": [],
                            "additionalProperties": false,
                        },
                        "any": { "type": "object" },
                    },
                    "required": ["names"],
                    "additionalProperties": false,
                },
                "ratio": { "type": "number", "default": 1 },
            },
            "required": ["path", "filter"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn no_parameters_and_no_word_of_them_are_not_the_same() {
    check(
        "",
        json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }),
    );
    assert_eq!(local("[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n").parameters, None);
}

#[test]
fn a_parameter_has_a_name_that_models_take() {
    let name = "is not the name of a parameter: it takes 1 to 64 letters, digits, `_`, `-` and `.`";
    check_refused(
        r#"
b = { type = "object", properties = { _d = { type = "string" }, "ä" = { type = "string" } } }
_topic = { type = "string" }
"" = { type = "string" }
"a b" = { type = "string" }
"#,
        &[
            &format!("C:6:65: `ä` {name}"),
            "C:7:1: parameter `_topic` starts with `_`, which is reserved for the host; rename it",
            &format!("C:8:1: `` {name}"),
            &format!("C:9:1: `a b` {name}"),
        ],
    );
}

#[test]
fn a_parameter_without_a_type_takes_any_json_value() {
    let parameters = r#"
a = {}
b = { description = "Any value.", default = [1, "x"], enum = [1, [1, "x"]], required = false }
c = { type = "array", items = {} }
"#;
    let schema = local(&format!("{HEAD}{parameters}")).parameters.unwrap().input_schema();
    assert_eq!(
        schema["properties"],
        json!({
            "a": {},
            "b": { "description": "Any value.", "enum": [1, [1, "x"]], "default": [1, "x"] },
            "c": { "type": "array", "items": {} },
        })
    );
    check_refused(
        r#"
a = { items = { type = "string" } }
b = { enum = [1, "x"], default = 2 }
"#,
        &[
            "C:6:15: `items` means something for the type `array` only, and this names none; add \
             `type = \"array\"`",
            "C:7:34: `tools.t.parameters.b.default` takes `1` or `x`, not `2`; did you mean `1`?",
        ],
    );
}

#[test]
fn a_default_fits_the_type() {
    check_refused(
        r#"
a = { type = "string", default = 1 }
b = { type = "integer", default = 1.0 }
c = { type = "number", default = "1" }
d = { type = "boolean", default = [] }
e = { type = "array", default = {} }
f = { type = "object", default = true }
g = { type = "array", items = { type = "array", items = { type = "string" } }, default = [["a"], ["b", 2]] }
h = { type = "string", default = 2020-01-01 }
i = { type = "number", default = inf }
"#,
        &[
            "C:6:34: `tools.t.parameters.a.default` takes a string, not the integer `1`",
            "C:7:35: `tools.t.parameters.b.default` takes an integer, not the number `1.0`",
            "C:8:34: `tools.t.parameters.c.default` takes a number, not the string `1`",
            "C:9:35: `tools.t.parameters.d.default` takes `true` or `false`, not an array",
            "C:10:33: `tools.t.parameters.e.default` takes an array, not a table",
            "C:11:34: `tools.t.parameters.f.default` takes a table, not `true`",
            "C:12:90: `tools.t.parameters.g.default[1][1]` takes a string, not the integer `2`",
            "C:14:34: `inf` cannot be handed to a tool: JSON has no such number",
        ],
    );
}

#[test]
fn the_default_of_an_object_fits_its_properties() {
    let object = |default: &str| {
        format!(
            "o = {{ type = \"object\", default = {default}, properties = {{ name = {{ type = \"string\", \
             required = true }}, count = {{ type = \"integer\" }} }} }}\n"
        )
    };
    let check_refused =
        |default: &str, expected: &[&str]| check_refused(&object(default), expected);
    check_refused(r#"{ name = "a", count = 1 }"#, &[]);
    check_refused(
        r#"{ name = "a", cuont = 1 }"#,
        &["C:5:34: unknown key `cuont` in `tools.t.parameters.o.default`; did you mean `count`?"],
    );
    check_refused(
        r#"{ count = 1 }"#,
        &["C:5:34: missing key `name` in `tools.t.parameters.o.default`"],
    );
    check_refused(
        r#"{ name = 1 }"#,
        &["C:5:34: `tools.t.parameters.o.default.name` takes a string, not the integer `1`"],
    );
}

#[test]
fn the_values_of_an_enum_fit_the_type_and_the_default_is_one_of_them() {
    check_refused(
        r#"
a = { type = "string", enum = ["word", "line"], default = "wrd" }
b = { type = "integer", enum = [1, "2", 3] }
c = { type = "string", enum = [] }
d = { type = "number", enum = [1, 2.5, 1.0] }
e = { type = "number", enum = [1, 2.5], default = 1.0 }
f = { type = "array", items = { type = "string", enum = ["a"] }, default = ["b"] }
g = { type = "string", enum = ["a", "a"], required = true, default = "a" }
"#,
        &[
            "C:6:59: `tools.t.parameters.a.default` takes `word` or `line`, not `wrd`; did you mean `word`?",
            "C:7:36: `tools.t.parameters.b.enum[1]` takes an integer, not the string `2`",
            "C:8:31: `enum` is empty, so that no value fits; list the values, or remove it",
            "C:9:40: `1.0` is listed twice",
            "C:11:76: `tools.t.parameters.f.default[0]` takes `a`, not `b`; did you mean `a`?",
            "C:12:37: `a` is listed twice",
        ],
    );
}

#[test]
fn a_key_that_means_nothing_where_it_stands_is_refused() {
    check_refused(
        r#"
a = { type = "string", items = { type = "string" } }
b = { type = "array", properties = {} }
c = { type = "array", items = { type = "string", required = false, default = "x", description = "fine" } }
"#,
        &[
            "C:6:32: `items` means something for the type `array` only, and this is of type `string`",
            "C:7:36: `properties` means something for the type `object` only, and this is of type `array`",
            "C:8:61: `required` means nothing for the elements of an array; remove it",
            "C:8:78: `default` means nothing for the elements of an array; remove it",
        ],
    );
}
