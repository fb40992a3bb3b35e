//! Calls of core modules.

use std::time::Duration;

#[cfg(feature = "storage")]
use kitbag_policy::StorageGrant;
use kitbag_policy::{SecretGrant, SecretName};
use serde_json::{Value, json};

use crate::lanes::test_host::{TestTool, quoted, serve};

/// Room for the input at offset 1,024.
const PARTS: &str = r#"
    (memory (export "memory") 1)
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "dealloc") (param i32 i32))"#;

/// Returns a module whose entry has this body.
fn module(body: &str) -> TestTool {
    TestTool::new(&format!(
        r#"(module {PARTS}
            (func (export "execute") (param $pointer i32) (param $length i32) (result i64) {body}))"#
    ))
}

/// Returns a module that answers with these bytes.
fn constant(answer: &[u8]) -> TestTool {
    TestTool::new(&format!(
        r#"(module {PARTS} (data (i32.const 8192) "{}")
            (func (export "execute") (param i32 i32) (result i64)
                i64.const {}))"#,
        quoted(answer),
        (8192i64 << 32) | answer.len() as i64
    ))
}

/// Returns a module that answers with its input.
fn echo() -> TestTool {
    module(
        "(i64.or
            (i64.shl (i64.extend_i32_u (local.get $pointer)) (i64.const 32))
            (i64.extend_i32_u (local.get $length)))",
    )
}

/// Returns the arguments with which an echo makes a capability call.
fn capability(name: &str, arguments: Value) -> String {
    json!({
        "status": "capability_call",
        "abi_version": 1,
        "capability_call": { "name": name, "args": arguments },
    })
    .to_string()
}

#[test]
fn json_is_passed_in_and_out() {
    assert_eq!(echo().success(r#"{ "a": [1, "ä"] }"#), r#"{ "a": [1, "ä"] }"#);
    assert_eq!(constant(b"").success("{}"), "{}");
    assert_eq!(constant(b" 1 ").success("{}"), " 1 ");
}

#[test]
fn another_entry_is_found_by_name() {
    let constant = |name: &str, offset: i64| {
        format!(
            r#"(func (export "{name}") (param i32 i32) (result i64) i64.const {})"#,
            (offset << 32) | 1
        )
    };
    let (one, two) = (constant("execute", 0), constant("other", 1));
    let mut tool =
        TestTool::new(&format!(r#"(module {PARTS} (data (i32.const 0) "12") {two} {one})"#));
    assert_eq!(tool.success("{}"), "1");
    tool.name = "other";
    assert_eq!(tool.success("{}"), "2");
    let tools = &tool.described().description().unwrap().tools;
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["other", "execute"]);
}

#[test]
fn errors_of_the_module_are_errors() {
    let answer = r#"{"status":"error","code":"invalid_args","error":"Missing id"}"#;
    assert_eq!(constant(answer.as_bytes()).error("{}"), answer);
}

#[test]
fn malformed_results_are_errors() {
    let check = |answer: &[u8], expected: &str| {
        assert_eq!(constant(answer).error("{}"), format!("the result of the module is {expected}"));
    };
    check(b"{", "not JSON: EOF while parsing an object at line 1 column 1");
    check(b"\xff", "not JSON: invalid UTF-8 at line 1 column 1");
    check(br#"{"a":1,"a":2}"#, "not JSON: duplicate key `a` at line 1 column 10");
    let deep = "[".repeat(10_000);
    let message = constant(deep.as_bytes()).error("{}");
    assert!(message.contains("recursion limit exceeded"), "{message}");
}

#[test]
fn lies_about_memory_end_the_call() {
    let check = |body: &str| {
        let message = module(body).failure("{}");
        assert!(message.contains("out of bounds"), "{body}: {message}");
    };
    // Pointer and length: beyond the end, at the end, the largest.
    check("i64.const 0x00010000_00000001");
    check("i64.const 0x0000ffff_00000002");
    check("i64.const 0xffffffff_00000001");
    check("i64.const 0x00000000_ffffffff");
    check("i64.const 0xffffffff_ffffffff");
    assert_eq!(module("i64.const 0x00010000_00000000").success("{}"), "{}");
}

#[test]
fn hostile_allocators_end_the_call() {
    let check = |alloc: &str, expected: &str| {
        let mut tool = TestTool::new(&format!(
            r#"(module
                (memory (export "memory") 1)
                (func (export "alloc") (param i32) (result i32) {alloc})
                (func (export "dealloc") (param i32 i32))
                (func (export "execute") (param i32 i32) (result i64) i64.const 0))"#
        ));
        tool.limits.time = Duration::from_millis(200);
        let message = tool.failure(r#"{"a":1}"#);
        assert!(message.contains(expected), "{alloc}: {message}");
    };
    check("i32.const -1", "beyond end of memory");
    check("i32.const 65535", "beyond end of memory");
    check("unreachable", "unreachable");
    check("(loop (br 0)) i32.const 0", "200ms");
    // It grows the memory to its limit, and then answers with the failed growth.
    check(
        "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) i32.const -1",
        "memory",
    );
}

#[test]
fn modules_with_other_functions_are_refused() {
    let entry = r#"(func (export "execute") (param i32 i32) (result i64) i64.const 0)"#;
    for module in [
        format!(r#"(module (import "env" "f" (func)) {PARTS} {entry})"#),
        format!("(module {PARTS})"),
        format!("(module {})", PARTS.replace("(param i32 i32)", "(param i32)")),
    ] {
        assert!(TestTool::load(&module).is_err(), "{module}");
    }
}

#[test]
fn undeclared_capabilities_are_forbidden() {
    let tool = echo();
    for name in ["clock.now_unix", "http.request", "kv.sqlite.todo.list", "secrets.get", "x"] {
        assert_eq!(
            tool.error(&capability(name, json!({ "name": "token" }))),
            json!({
                "status": "error",
                "code": "forbidden",
                "error": format!("Capability '{name}' is not allowed for tool 'test'"),
            })
            .to_string()
        );
    }
}

#[test]
fn declared_capabilities_without_a_handler_are_internal() {
    let mut tool = echo();
    tool.grants.config.set("capabilities", "x.y kv.sqlite.todo.fly,solana.balance").unwrap();
    tool.name = "solana";
    for name in ["x.y", "kv.sqlite.todo.fly", "solana.balance"] {
        assert_eq!(
            tool.error(&capability(name, json!({}))),
            json!({
                "status": "error",
                "code": "internal",
                "error": format!(
                    "Capability '{name}' requested by wasm tool 'solana' but host bridge for this \
                     capability is not implemented yet"
                ),
            })
            .to_string()
        );
    }
}

#[test]
fn capabilities_of_another_tool_are_forbidden() {
    let mut tool = echo();
    tool.grants.config.set("capabilities", "kv.sqlite.todo.list").unwrap();
    assert_eq!(
        tool.error(&capability("kv.sqlite.todo.list", json!({}))),
        json!({
            "status": "error",
            "code": "forbidden",
            "error": "Capability 'kv.sqlite.todo.list' is only valid for tool 'todo'",
        })
        .to_string()
    );
}

/// Returns the result of a capability.
#[track_caller]
fn result(tool: &TestTool, name: &str, arguments: Value) -> Value {
    let answer: Value = serde_json::from_str(&tool.success(&capability(name, arguments))).unwrap();
    assert_eq!((&answer["status"], &answer["abi_version"]), (&json!("ok"), &json!(1)));
    assert_eq!(answer["capability_result"]["name"], name);
    answer["capability_result"]["result"].clone()
}

#[test]
fn declared_capabilities_are_answered() {
    let mut tool = echo();
    tool.grants.config.set("capabilities", "clock.now_unix, log.emit").unwrap();
    let time = result(&tool, "clock.now_unix", json!({}));
    assert!(time["unix"].as_i64().unwrap() > 1_700_000_000, "{time}");
    let logged = result(&tool, "log.emit", json!({ "level": "warn", "event": "e" }));
    assert_eq!(logged, json!({ "logged": true }));
}

#[test]
fn malformed_capability_calls_are_errors() {
    let check = |call: Value, expected: &str| assert_eq!(echo().error(&call.to_string()), expected);
    let call = json!({ "status": "capability_call" });
    check(call, "the module made a capability call without `capability_call`");
    let call = json!({ "status": "capability_call", "capability_call": { "name": 1 } });
    check(call, "the module made a capability call without `name`");
    let call = json!({ "status": "capability_call", "abi_version": 2, "capability_call": { "name": "x" } });
    let refused = json!({
        "status": "error",
        "code": "invalid_args",
        "error": "Unsupported capability ABI version 2 (supported: 1)",
    });
    check(call, &refused.to_string());
    check(
        json!({ "status": "host_call" }),
        "the module of `test` made a `host_call`, which Butterfly Bot no longer offers; rebuild it \
         with capability calls",
    );
    check(
        json!({ "stub": true }),
        "the module of `test` is a placeholder without a tool; build or download the real one",
    );
}

#[test]
fn resumed_modules_receive_their_results() {
    let mut tool = echo();
    tool.grants.config.set("capabilities", "log.emit").unwrap();
    let call = json!({
        "status": "capability_call",
        "capability_call": { "name": "log.emit", "args": {}, "resume": true },
    });
    // The echo makes the same call each time, which ends at the limit.
    assert_eq!(tool.error(&call.to_string()), "the tool made more than 8 capability calls");
}

#[test]
fn requests_need_a_grant() {
    let mut tool = echo();
    // The name of the file.
    tool.name = "http_call_tool";
    let request = json!({ "method": "GET", "url": "https://example.test/" });
    let completion = tool.call(&capability("http.request", request));
    assert_eq!(completion.requests.len(), 1, "{completion:?}");
    assert_eq!(completion.refused.len(), 1, "{completion:?}");
    assert!(matches!(completion.result, Ok(kitbag_contract::Outcome::Error(_))));
}

#[test]
fn granted_requests_are_sent() {
    let response = "HTTP/1.1 201 Created\r\nx: y\r\ncontent-length: 7\r\n\r\n{\"a\":1}";
    let (address, server) = serve(response);
    let mut tool = echo();
    tool.name = "http_call";
    tool.grant_http(address);
    tool.grants.config.set("base_url", &format!("http://{address}/v1")).unwrap();
    let request = json!({
        "method": "post", "endpoint": "items", "query": { "q": 1 }, "body": "the end",
        "headers": { "content-type": "text/plain" },
    });
    let result = result(&tool, "http.request", request);
    let expected = json!({
        "status": "ok", "server": null, "http_status": 201, "text": "{\"a\":1}",
        "json": { "a": 1 }, "headers": { "x": "y", "content-length": "7" },
    });
    assert_eq!(result, expected);
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /v1/items?q=1 HTTP/1.1\r\n"), "{request}");
}

#[test]
fn secrets_are_placeholders() {
    let mut tool = echo();
    tool.grants.secrets = vec![SecretGrant {
        name: SecretName::new("token").unwrap(),
        to: Vec::new(),
        within: None,
        added: None,
        variables: Vec::new(),
        in_query: false,
        in_body: false,
    }];
    for (capability, arguments) in
        [("secrets.get", json!({ "name": "token" })), ("secrets.get.token", json!({}))]
    {
        let secret = result(&tool, capability, arguments);
        assert_eq!((&secret["name"], &secret["found"]), (&json!("token"), &json!(true)));
        let value = secret["value"].as_str().unwrap();
        assert!(value.starts_with("kitbag_placeholder_"), "{value}");
    }
    // Another secret is declared, but not granted.
    tool.grants.config.set("capabilities", "secrets.get.other").unwrap();
    let secret = result(&tool, "secrets.get", json!({ "name": "other" }));
    assert_eq!(secret, json!({ "name": "other", "found": false, "value": null }));
}

#[cfg(feature = "storage")]
mod storage {
    use super::*;

    fn tool(name: &'static str) -> TestTool {
        let mut tool = echo();
        tool.name = name;
        tool.grants.storage = Some(StorageGrant::default());
        tool
    }

    /// Calls an action and returns its result. Times are omitted.
    #[track_caller]
    fn act(tool: &TestTool, action: &str, arguments: Value) -> Value {
        let name = format!("kv.sqlite.{}.{action}", tool.name);
        let mut arguments = arguments;
        arguments["user_id"] = json!("u");
        let mut result = result(tool, &name, arguments);
        assert_eq!(result["status"], "ok");
        without_times(&mut result);
        result
    }

    fn without_times(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(without_times),
            Value::Object(object) => {
                for key in ["created_at", "updated_at", "status", "user_id", "next_run_at"] {
                    object.remove(key);
                }
                if let Some(time) = object.get_mut("completed_at").filter(|it| it.is_number()) {
                    *time = json!("now");
                }
                object.retain(|_, value| !value.is_null());
                object.values_mut().for_each(without_times);
            }
            _ => {}
        }
    }

    #[test]
    fn storage_needs_a_grant() {
        let mut tool = tool("todo");
        tool.grants.storage = None;
        let list = capability("kv.sqlite.todo.list", json!({ "user_id": "u" }));
        let completion = tool.call(&list);
        assert_eq!(completion.refused.len(), 1, "{completion:?}");
        assert!(tool.error(&list).contains("storage"), "{}", tool.error(&list));
    }

    #[test]
    fn missing_arguments_are_named() {
        let tool = tool("todo");
        let check = |action: &str, arguments: Value, expected: &str| {
            let name = format!("kv.sqlite.todo.{action}");
            assert_eq!(tool.error(&capability(&name, arguments)), expected);
        };
        check("list", json!({}), "capability args missing user_id");
        check("create", json!({ "user_id": "u" }), "capability args missing title");
        check("complete", json!({ "user_id": "u" }), "capability args missing id");
        check("complete", json!({ "user_id": "u", "id": 7 }), "there is no entry with the id 7");
        check("create_many", json!({ "user_id": "u", "items": [] }), "items empty");
        check("create_many", json!({ "user_id": "u", "items": [1] }), "Invalid item format");
        check("reorder", json!({ "user_id": "u", "ordered_ids": ["a"] }), "ordered_ids empty");
    }

    #[test]
    fn todo_items_are_kept() {
        let tool = tool("todo");
        let item = |id: i64, title: &str, position: i64| json!({ "id": id, "title": title, "position": position, "dependency_refs": [] });
        let created = act(&tool, "create", json!({ "title": "milk", "notes": null }));
        assert_eq!(created, json!({ "item": item(1, "milk", 1) }));
        let items = json!({ "items": ["eggs", { "title": "bread" }] });
        let created = act(&tool, "create_many", items);
        assert_eq!(created, json!({ "items": [item(2, "eggs", 2), item(3, "bread", 3)] }));
        act(&tool, "reorder", json!({ "ordered_ids": [3, 1] }));
        act(&tool, "complete", json!({ "id": 2 }));
        let listed = act(&tool, "list", json!({}));
        assert_eq!(listed, json!({ "items": [item(3, "bread", 1), item(1, "milk", 2)] }));
        let listed = act(&tool, "list", json!({ "status": "all", "limit": 1 }));
        assert_eq!(listed["items"].as_array().unwrap().len(), 1);
        let completed = act(&tool, "list", json!({ "status": "completed" }));
        assert_eq!(completed["items"][0]["completed_at"], "now");
        act(&tool, "reopen", json!({ "id": 2 }));
        assert_eq!(act(&tool, "delete", json!({ "id": 2 })), json!({ "deleted": true }));
        assert_eq!(act(&tool, "delete", json!({ "id": 2 })), json!({ "deleted": false }));
        assert_eq!(act(&tool, "clear", json!({})), json!({ "deleted": 2 }));
        assert_eq!(act(&tool, "list", json!({})), json!({ "items": [] }));
    }

    #[test]
    fn users_have_their_own_items() {
        let tool = tool("todo");
        act(&tool, "create", json!({ "title": "milk" }));
        let list = json!({ "user_id": "v" });
        let listed = result(&tool, "kv.sqlite.todo.list", list);
        assert_eq!(listed["items"], json!([]));
    }

    #[test]
    fn tasks_are_scheduled() {
        let tool = tool("tasks");
        let task = json!({ "name": "n", "prompt": "p", "run_at": 5, "interval_minutes": 0 });
        let created = act(&tool, "schedule", task);
        let expected = json!({ "id": 1, "name": "n", "prompt": "p", "run_at": 5, "enabled": true });
        assert_eq!(created, json!({ "task": expected }));
        act(&tool, "disable", json!({ "id": 1 }));
        assert_eq!(act(&tool, "list", json!({ "status": "enabled" })), json!({ "tasks": [] }));
        act(&tool, "enable", json!({ "id": 1 }));
        assert_eq!(act(&tool, "list", json!({})), json!({ "tasks": [expected] }));
        assert_eq!(act(&tool, "clear", json!({})), json!({ "deleted": 1 }));
        assert_eq!(act(&tool, "delete", json!({ "id": 1 })), json!({ "deleted": false }));
    }

    #[test]
    fn reminders_are_snoozed_and_completed() {
        let tool = tool("reminders");
        let reminder = json!({ "id": 1, "title": "t", "due_at": 1_700_000_000 });
        let due = json!({ "title": "t", "due_at": 1_700_000_000_000i64 });
        assert_eq!(act(&tool, "create", due), json!({ "reminder": reminder }));
        // The same reminder.
        let again = json!({ "title": "t", "due_at": 1_700_000_001 });
        assert_eq!(act(&tool, "create", again), json!({ "reminder": reminder }));
        let later = json!({ "id": 1, "due_at": 1_800_000_000 });
        assert_eq!(act(&tool, "snooze", later), json!({ "snoozed": true }));
        let listed = act(&tool, "list", json!({ "limit": 0 }));
        assert_eq!(listed["reminders"][0]["due_at"], 1_800_000_000);
        assert_eq!(act(&tool, "complete", json!({ "id": 1 })), json!({ "completed": true }));
        assert_eq!(act(&tool, "complete", json!({ "id": 2 })), json!({ "completed": false }));
        assert_eq!(act(&tool, "list", json!({})), json!({ "reminders": [] }));
        assert_eq!(act(&tool, "clear", json!({})), json!({ "deleted": 0 }));
        assert_eq!(act(&tool, "clear", json!({ "status": "all" })), json!({ "deleted": 1 }));
        assert_eq!(act(&tool, "delete", json!({ "id": 1 })), json!({ "deleted": false }));
    }

    #[test]
    fn plans_are_updated() {
        let tool = tool("planning");
        let plan = json!({ "title": "t", "goal": "g", "steps": ["a", { "title": "b" }] });
        let created = act(&tool, "create", plan);
        let expected =
            json!({ "id": 1, "title": "t", "goal": "g", "steps": ["a", { "title": "b" }] });
        assert_eq!(created, json!({ "plan": expected }));
        let updated = act(&tool, "update", json!({ "id": 1, "goal": "h" }));
        assert_eq!(updated["plan"]["goal"], "h");
        assert_eq!(act(&tool, "get", json!({ "id": 1 })), updated);
        assert_eq!(act(&tool, "list", json!({}))["plans"], json!([updated["plan"]]));
        let steps = json!({ "user_id": "u", "id": 1, "steps": "a" });
        let refused = capability("kv.sqlite.planning.update", steps);
        assert_eq!(tool.error(&refused), "steps must be an array");
        assert_eq!(act(&tool, "delete", json!({ "id": 1 })), json!({ "deleted": true }));
        assert_eq!(act(&tool, "clear", json!({})), json!({ "deleted": 0 }));
    }

    #[test]
    fn wakeups_repeat() {
        let tool = tool("wakeup");
        let wakeup = json!({ "name": "n", "prompt": "p", "interval_minutes": i64::MAX });
        let created = act(&tool, "create", wakeup);
        let expected = json!({
            "id": 1, "name": "n", "prompt": "p", "interval_minutes": i64::MAX, "enabled": true,
        });
        assert_eq!(created, json!({ "task": expected }));
        act(&tool, "disable", json!({ "id": 1 }));
        let disabled = act(&tool, "list", json!({ "status": "disabled" }));
        assert_eq!(disabled["tasks"][0]["enabled"], false);
        act(&tool, "enable", json!({ "id": 1 }));
        assert_eq!(act(&tool, "list", json!({})), json!({ "tasks": [expected] }));
        assert_eq!(act(&tool, "delete", json!({ "id": 1 })), json!({ "deleted": true }));
    }
}
