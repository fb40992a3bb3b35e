//! Calls of plugins.

use kitbag_contract::{Content, Outcome};
use serde_json::{Value, json};

use crate::lanes::test_host::{TestTool, quoted, serve};

/// The imports of the modules below.
const IMPORTS: &str = r#"
    (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
    (import "extism:host/env" "free" (func $free (param i64)))
    (import "extism:host/env" "length" (func $length (param i64) (result i64)))
    (import "extism:host/env" "load_u8" (func $load_u8 (param i64) (result i32)))
    (import "extism:host/env" "load_u64" (func $load_u64 (param i64) (result i64)))
    (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
    (import "extism:host/env" "store_u64" (func $store_u64 (param i64 i64)))
    (import "extism:host/env" "input_offset" (func $input_offset (result i64)))
    (import "extism:host/env" "input_length" (func $input_length (result i64)))
    (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
    (import "extism:host/env" "error_set" (func $error_set (param i64)))
    (import "extism:host/env" "config_get" (func $config_get (param i64) (result i64)))
    (import "extism:host/env" "var_get" (func $var_get (param i64) (result i64)))
    (import "extism:host/env" "var_set" (func $var_set (param i64 i64)))
    (import "extism:host/env" "http_request" (func $http_request (param i64 i64) (result i64)))
    (import "extism:host/env" "http_status_code" (func $http_status (result i32)))
    (import "extism:host/env" "http_headers" (func $http_headers (result i64)))
    (import "extism:host/env" "log_info" (func $log_info (param i64)))
    (memory (export "memory") 1)
    (func $text (param $from i32) (param $length i32) (result i64)
        (local $block i64) (local $at i32)
        (local.set $block (call $alloc (i64.extend_i32_u (local.get $length))))
        (loop
            (call $store_u8
                (i64.add (local.get $block) (i64.extend_i32_u (local.get $at)))
                (i32.load8_u (i32.add (local.get $from) (local.get $at))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if 0 (i32.lt_u (local.get $at) (local.get $length))))
        (local.get $block))
    (func $answer (param $block i64)
        (call $output_set (local.get $block) (call $length (local.get $block))))"#;

/// Returns a plugin with more items.
fn plugin(items: &str) -> TestTool {
    TestTool::new(&format!("(module {IMPORTS} {items})"))
}

/// Returns a plugin with one function, and the text `data` at offset 0.
fn function(data: &str, body: &str) -> TestTool {
    plugin(&format!(
        r#"(data (i32.const 0) "{}")
        (func (export "f") (result i32) {body})"#,
        quoted(data.as_bytes())
    ))
}

const ECHO: &str = "(call $output_set (call $input_offset) (call $input_length)) i32.const 0";

#[test]
fn input_is_text_or_json() {
    let tool = function("", ECHO);
    let check = |arguments: Value, expected: &str| {
        assert_eq!(tool.success(&arguments.to_string()), expected);
    };
    check(json!({ "input": "a\nä" }), "a\nä");
    check(json!({ "input": { "a": [1] } }), r#"{"a":[1]}"#);
    check(json!({ "input": "" }), "");
    check(json!({}), "");
    let long = "x".repeat(500_000);
    check(json!({ "input": long }), &long);
}

#[test]
fn each_function_is_a_tool() {
    let mut tool = plugin(
        r#"(func (export "one") (result i32) i32.const 0)
        (func (export "two") (call $output_set (call $input_offset) (call $input_length)))
        (func (export "other") (param i32) (result i32) i32.const 0)
        (func (export "_initialize"))"#,
    );
    let tools = &tool.described().description().unwrap().tools;
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["one", "two"]);
    tool.name = "two";
    assert_eq!(tool.success(r#"{"input":"a"}"#), "a");
    tool.name = "three";
    assert_eq!(
        tool.error("{}"),
        "the plugin has no function `three`, only `one`, `two`; name one of them with `function`"
    );
}

#[test]
fn constructors_run_before_the_call() {
    let tool = plugin(
        r#"(global $value (mut i32) (i32.const 0))
        (func (export "__wasm_call_ctors") (global.set $value (i32.const 7)))
        (func (export "f") (result i32) (i32.sub (global.get $value) (i32.const 7)))"#,
    );
    assert_eq!(tool.success("{}"), "");
}

#[test]
fn status_and_error_message_fail_the_call() {
    assert_eq!(function("", "i32.const 3").error("{}"), "`f` returned the status 3");
    let body = "(call $error_set (call $text (i32.const 0) (i32.const 4))) i32.const 1";
    assert_eq!(function("nope", body).error("{}"), "nope");
    // A message that is not UTF-8, and one that was freed.
    let body = "(call $error_set (call $text (i32.const 100) (i32.const 1)))
        (call $error_set (i64.const 0)) i32.const 0";
    assert_eq!(function("", body).success("{}"), "");
}

#[test]
fn variables_last_for_one_call() {
    let body = "
        (call $answer (call $var_get (call $text (i32.const 0) (i32.const 1))))
        (call $var_set
            (call $text (i32.const 0) (i32.const 1)) (call $text (i32.const 1) (i32.const 2)))
        (call $answer (call $var_get (call $text (i32.const 0) (i32.const 1))))
        i32.const 0";
    let tool = function("kvv", body);
    assert_eq!(tool.success("{}"), "vv");
    let body =
        "(call $answer (call $var_get (call $text (i32.const 0) (i32.const 1)))) i32.const 0";
    assert_eq!(function("k", body).success("{}"), "");
}

#[test]
fn variables_have_a_limit() {
    let body = "
        (call $var_set
            (call $text (i32.const 0) (i32.const 1)) (call $alloc (i64.const 1048576)))
        i32.const 0";
    assert_eq!(function("k", body).error("{}"), "the variables of the plugin exceed 1 MiB");
}

#[test]
fn configuration_values_are_those_of_the_grant() {
    let body =
        "(call $answer (call $config_get (call $text (i32.const 0) (i32.const 3)))) i32.const 0";
    let mut tool = function("key", body);
    assert_eq!(tool.success("{}"), "");
    tool.grants.config.set("key", "value").unwrap();
    assert_eq!(tool.success("{}"), "value");
}

#[test]
fn requests_need_a_grant() {
    let request = r#"{"url":"https://example.test/","method":"get","headers":{}}"#;
    let body = format!(
        "(drop (call $http_request (call $text (i32.const 0) (i32.const {})) (i64.const 0)))
        i32.const 0",
        request.len()
    );
    let completion = function(request, &body).call("{}");
    let message = match &completion.result {
        Ok(Outcome::Error(error)) => &error.message,
        other => panic!("{other:?}"),
    };
    assert!(message.contains("example.test"), "{message}");
    assert_eq!((completion.requests.len(), completion.refused.len()), (1, 1));
}

#[test]
fn granted_requests_are_sent() {
    let response = "HTTP/1.1 404 Not Found\r\nx: y\r\ncontent-length: 4\r\n\r\ngone";
    let (address, server) = serve(response);
    let request = json!({ "url": format!("http://{address}/a"), "headers": { "b": "c" } });
    let request = format!("{request}end");
    let length = request.len();
    let body = format!(
        "(local $block i64)
        (local.set $block
            (call $http_request
                (call $text (i32.const 0) (i32.const {}))
                (call $text (i32.const {}) (i32.const 3))))
        (call $answer (local.get $block))
        (i32.sub (call $http_status) (i32.const 404))",
        length - 3,
        length - 3,
    );
    let mut tool = function(&request, &body);
    tool.grant_http(address);
    assert_eq!(tool.success("{}"), "gone");
    let request = server.join().unwrap();
    assert!(request.starts_with("GET /a HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nb: c\r\n") && request.ends_with("\r\n\r\nend"), "{request}");
}

#[test]
fn malformed_requests_are_errors() {
    let check = |request: &str, expected: &str| {
        let body = format!(
            "(drop (call $http_request (call $text (i32.const 0) (i32.const {})) (i64.const 0)))
            i32.const 0",
            request.len()
        );
        let message = function(request, &body).error("{}");
        assert!(message.contains(expected), "{message}");
    };
    check("{", "is not valid");
    check(r#"{"url":"a:b","more":1}"#, "unknown field");
    check(r#"{"url":"https://a.test","method":"a b"}"#, "`A B` is not an HTTP method");
    check(r#"{"url":"https://a.test","headers":{"a":"\n"}}"#, "the header field `a` is not valid");
}

#[test]
fn blocks_that_do_not_exist_fail_the_call() {
    let check = |body: &str, expected: &str| {
        assert_eq!(function("", &format!("{body} i32.const 0")).error("{}"), expected);
    };
    let key = "the plugin gave a configuration key at 5, which is not a block";
    check("(drop (call $config_get (i64.const 5)))", key);
    let name =
        "the plugin gave the name of a variable at 18446744073709551615, which is not a block";
    check("(drop (call $var_get (i64.const -1)))", name);
    // A block that is freed twice.
    check(
        "(local $block i64)
        (local.set $block (call $alloc (i64.const 3)))
        (call $free (local.get $block))
        (call $free (local.get $block))
        (call $log_info (local.get $block))",
        "the plugin gave a log message at 77, which is not a block",
    );
    // A block that a host function has freed.
    check(
        "(local $block i64)
        (local.set $block (call $alloc (i64.const 3)))
        (call $log_info (local.get $block))
        (call $log_info (local.get $block))",
        "the plugin gave a log message at 77, which is not a block",
    );
}

#[test]
fn accesses_at_the_end_of_the_memory_trap() {
    let check = |body: &str| {
        let message = function("", &format!("{body} i32.const 0")).failure("{}");
        assert!(message.contains("out of bounds"), "{body}: {message}");
    };
    check("(drop (call $load_u8 (i64.const 1048576)))");
    check("(drop (call $load_u64 (i64.const 1048569)))");
    check("(call $store_u8 (i64.const 1048576) (i32.const 1))");
    // Offsets beyond it have no effect.
    let body = "
        (call $store_u64 (i64.const -8) (i64.const 1))
        (call $store_u64 (i64.const 1048577) (i64.const 1))
        (call $output_set (i64.const 1048577) (i64.const 1))
        (i32.add
            (i32.wrap_i64 (call $load_u64 (i64.const -1)))
            (call $load_u8 (i64.const 0xffffffffff)))";
    assert_eq!(function("", body).success("{}"), "");
}

#[test]
fn blocks_count_as_memory_of_the_guest() {
    // Each block leaves 100 bytes; the function ends when there are no more.
    let body = "
        (loop (br_if 0 (i64.ne (call $alloc (i64.const 100)) (i64.const 0))))
        i32.const 0";
    let completion = function("", body).call("{}");
    assert!(completion.result.is_ok(), "{completion:?}");
    let memory = completion.usage.memory.as_u64();
    assert!((3 << 20..=4 << 20).contains(&memory), "{memory}");
    let body = "(drop (call $alloc (i64.const 5000000))) unreachable";
    let message = function("", body).failure("{}");
    assert!(message.contains("4 MiB"), "{message}");
}

#[test]
fn input_that_exceeds_the_memory_is_refused() {
    let mut tool = function("", ECHO);
    tool.limits.memory = kitbag_base::ByteSize::bytes(128 << 10);
    let long = json!({ "input": "x".repeat(500_000) }).to_string();
    let message = tool.error(&long);
    assert!(message.starts_with("there is no memory for the input; limit: memory"), "{message}");
}

#[test]
fn output_is_copied_within_a_limit() {
    let body =
        "(call $output_set (call $alloc (i64.const 17000000)) (i64.const 17000000)) i32.const 0";
    let mut tool = function("", body);
    tool.limits.memory = kitbag_base::ByteSize::mib(64);
    assert_eq!(tool.error("{}"), "the output of `f` exceeds 16 MiB");
    let body = "(call $log_info (call $alloc (i64.const 17000000))) i32.const 0";
    let mut tool = function("", body);
    tool.limits.memory = kitbag_base::ByteSize::mib(64);
    assert_eq!(tool.error("{}"), "the plugin gave a log message with more than 16 MiB");
}

#[test]
fn output_that_is_not_text_becomes_content() {
    let body = "(call $store_u8 (call $alloc (i64.const 1)) (i32.const 255))
        (call $output_set (i64.const 77) (i64.const 1)) i32.const 0";
    let completion = function("", body).call("{}");
    assert!(matches!(completion.result, Ok(Outcome::Success(ref text)) if text.is_empty()));
    assert!(matches!(&completion.emitted[..], [Content::Resource(_)]), "{completion:?}");
}

/// Returns a plugin whose first function answers with a text, and whose second one with its input.
fn servlet(describe: &str, call: &str, description: &str) -> TestTool {
    plugin(&format!(
        r#"(data (i32.const 0) "{}")
        (func (export "{describe}") (result i32)
            (call $answer (call $text (i32.const 0) (i32.const {}))) i32.const 0)
        (func (export "{call}") (result i32) {ECHO})"#,
        quoted(description.as_bytes()),
        description.len()
    ))
}

const TOOLS: &str = r#"{"tools":[{"name":"a","description":"A","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{}}]}"#;

#[test]
fn servlets_describe_their_tools() {
    for (describe, call) in [("describe", "call"), ("list_tools", "call_tool")] {
        let tool = servlet(describe, call, TOOLS);
        let description = tool.described().description().unwrap();
        let names: Vec<_> = description.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "b"]);
        // The echo of the request is not a result.
        assert_eq!(tool.error("{}"), "the result of the plugin has no list `content`");
    }
}

#[test]
fn requests_have_the_form_of_their_interface() {
    let check = |describe: &str, call: &str, expected: Value| {
        let result = json!({ "content": [{ "type": "text", "text": "ok" }] }).to_string();
        // It answers with a result if the input has the expected length, and with an error else.
        let length = expected.to_string().len();
        let tool = plugin(&format!(
            r#"(data (i32.const 0) "{}")
            (func (export "{describe}") (result i32) i32.const 0)
            (func (export "{call}") (result i32)
                (call $answer (call $text (i32.const 0) (i32.const {})))
                (i32.wrap_i64 (i64.sub (call $input_length) (i64.const {length}))))"#,
            quoted(result.as_bytes()),
            result.len()
        ));
        assert_eq!(tool.success(r#"{"x":1}"#), "ok");
    };
    let request = json!({ "name": "test", "arguments": { "x": 1 } });
    check("describe", "call", json!({ "params": request }));
    let context = json!({ "id": "kitbag", "_meta": {} });
    check("list_tools", "call_tool", json!({ "request": request, "context": context }));
}

#[test]
fn hostile_descriptions_are_unusable() {
    let long = format!(r#"{{"tools":[],"x":"{}"}}"#, "x".repeat(300_000));
    let deep = "[".repeat(10_000);
    for description in ["", "{", "[]", r#"{"tools":[1]}"#, &deep] {
        let tool = servlet("describe", "call", &format!("{description} "));
        assert!(tool.described().problem().is_some(), "{description}");
    }
    assert!(long.len() > 256 << 10);
    let tool = plugin(
        r#"(func (export "describe") (result i32) (loop (br 0)) i32.const 0)
        (func (export "call") (result i32) i32.const 0)"#,
    );
    assert!(tool.described().problem().is_some());
}

#[test]
fn functions_of_hyper_mcp_are_answered() {
    let tool = TestTool::new(
        r#"(module
            (import "extism:host/env" "length" (func $length (param i64) (result i64)))
            (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
            (import "extism:host/user" "list_roots" (func $list_roots (result i64)))
            (import "extism:host/user" "notify_tool_list_changed" (func $changed))
            (func (export "f") (result i32)
                (local $block i64)
                (call $changed)
                (local.set $block (call $list_roots))
                (call $output_set (local.get $block) (call $length (local.get $block)))
                i32.const 0))"#,
    );
    assert_eq!(tool.success("{}"), r#"{"roots":[]}"#);
}

#[test]
fn elicitations_are_questions() {
    let request = r#"{"message":"Sure?"}"#;
    let mut tool = TestTool::new(&format!(
        r#"(module
            (import "extism:host/user" "create_elicitation"
                (func $elicit (param i64) (result i64)))
            {IMPORTS}
            (data (i32.const 0) "{}")
            (func (export "f") (result i32)
                (call $answer (call $elicit (call $text (i32.const 0) (i32.const {}))))
                i32.const 0))"#,
        quoted(request.as_bytes()),
        request.len()
    ));
    match tool.call("{}").result {
        Ok(Outcome::NeedsInput(question)) => {
            assert_eq!((&*question.id, &*question.text), ("elicitation-0", "Sure?"));
        }
        other => panic!("{other:?}"),
    }
    tool.answers = r#"{"elicitation-0":true}"#;
    assert_eq!(tool.success("{}"), r#"{"action":"accept","content":{}}"#);
    tool.answers = r#"{"elicitation-0":false}"#;
    assert_eq!(tool.success("{}"), r#"{"action":"decline"}"#);
}
