//! Descriptions of functions, and the outcomes of calls.

use serde_json::json;

use super::*;

/// Returns a string that the memory has at an address.
const GREETING: &str = r#"
    (data (i32.const 8) "\10\00\00\00\05\00\00\00hello")
    (func (export "call") (param i32 i32) (result i32) (i32.const 8))"#;

#[test]
fn a_string_is_the_answer() {
    let ty = format!(r#"(func (export "call") (param "name" string) (result string) {LIFT}"#);
    let guest = Guest::new(&component(&ty, GREETING));
    assert_eq!(success(guest.call("call", &json!({ "name": "x" }))), "hello");
    // The only function needs no name, and unknown keys are ignored.
    assert_eq!(success(guest.call("any", &json!({ "name": "x", "y": 1 }))), "hello");
    let refused = message(guest.call("call", &json!({ "name": 1 })));
    assert_eq!(refused, "argument `/name`: must be a string, but is a number");
    let refused = message(guest.call("call", &json!({})));
    assert_eq!(refused, "the arguments: must have the key `name`");
    let description = guest.functions.description(&FunctionDocs::default());
    let [tool] = &description.tools[..] else { panic!("{description:?}") };
    assert_eq!(tool.description.as_deref(), Some("The function `call`."));
    assert_eq!(
        tool.input_schema,
        Some(json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
            "additionalProperties": false,
        }))
    );
    assert_eq!(tool.output_schema, None);
}

#[test]
fn the_error_of_a_result_is_the_error_of_the_tool() {
    let ty = format!(
        r#"(func (export "call") (param "fails" bool) (result (result string (error string)))
            {LIFT}"#
    );
    let core = r#"
        (data (i32.const 16) "\00\00\00\00\30\00\00\00\02\00\00\00")
        (data (i32.const 32) "\01\00\00\00\32\00\00\00\03\00\00\00")
        (data (i32.const 48) "okbad")
        (func (export "call") (param i32) (result i32)
            (select (i32.const 32) (i32.const 16) (local.get 0)))"#;
    let guest = Guest::new(&component(&ty, core));
    assert_eq!(success(guest.call("call", &json!({ "fails": false }))), "ok");
    assert_eq!(message(guest.call("call", &json!({ "fails": true }))), "bad");
}

#[test]
fn results_without_payload_are_answers() {
    let ty = format!(
        r#"(func (export "call") (param "fails" bool) (result (result)) {LIFT}
           (func (export "nothing") (canon lift (core func $i "nothing")))"#
    );
    let core = r#"
        (func (export "call") (param i32) (result i32) (local.get 0))
        (func (export "nothing"))"#;
    let guest = Guest::new(&component(&ty, core));
    assert_eq!(guest.names(), ["call", "nothing"]);
    assert_eq!(success(guest.call("call", &json!({ "fails": false }))), "");
    let failed = message(guest.call("call", &json!({ "fails": true })));
    assert_eq!(failed, "`call` failed without a message");
    assert_eq!(success(guest.call("nothing", &json!({}))), "");
    let unknown = message(guest.call("other", &json!({})));
    assert_eq!(unknown, "the component has no function `other`; it has `call`, `nothing`");
}

#[test]
fn an_output_schema_is_declared_for_records_only() {
    let ty = format!(
        r#"(type $r (record (field "a" u8)))
           (export $record "record" (type $r))
           (func (export "call") (result (result $record)) {LIFT}
           (func (export "number") (result u8) (canon lift (core func $i "number")))"#
    );
    let core = r#"
        (func (export "call") (result i32) (i32.store (i32.const 0) (i32.const 0x700)) (i32.const 0))
        (func (export "number") (result i32) (i32.const 7))"#;
    let guest = Guest::new(&component(&ty, core));
    assert_eq!(success(guest.call("call", &json!({}))), r#"{"a":7}"#);
    assert_eq!(success(guest.call("number", &json!({}))), "7");
    let description = guest.functions.description(&FunctionDocs::default());
    let schemas = description.tools.iter().map(|tool| tool.output_schema.is_some());
    assert_eq!(schemas.collect::<Vec<_>>(), [true, false]);
}

#[test]
fn schemas_fit_the_depth_of_parsers() {
    let mut ty = WitType::Bool;
    for _ in 0..kitbag_engine::TYPE_DEPTH - 1 {
        ty = variant(&[("a", Some(ty))]);
    }
    let schema = schema::of_parameters(&[("it".to_owned(), ty)]);
    let tools = vec![ToolDescription { input_schema: Some(schema), ..Default::default() }];
    let text = serde_json::to_string(&Description { tools, ..Description::default() }).unwrap();
    serde_json::from_str::<Value>(&text).unwrap();
}
