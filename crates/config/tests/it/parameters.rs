//! The arguments that a local tool takes.

use kitbag_config::{LocalTool, ToolSource};
use serde_json::{Value, json};

use crate::support::Fixture;

const HEAD: &str = "[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n[tools.t.parameters]\n";

fn local(config: &str) -> LocalTool {
    match &Fixture::new(config).load().tools["t"].source.value {
        ToolSource::Local(local) => local.clone(),
        _ => panic!("not local"),
    }
}

/// Compares the JSON Schema of these parameters, including the order of keys.
#[track_caller]
fn check(parameters: &str, expected: Value) {
    let schema = local(&format!("{HEAD}{parameters}")).parameters.unwrap().input_schema();
    assert_eq!(schema.to_string(), expected.to_string());
}

#[test]
fn empty_parameters_differ_from_absent_parameters() {
    check(
        "",
        json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }),
    );
    assert_eq!(local("[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n").parameters, None);
}
