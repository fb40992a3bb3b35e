//! Native tools of the embedding program: checked and limited like any tool, and able to call other
//! tools, in the library and through a server in the same process.

use std::fs;
use std::future::pending;
use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use kitbag::contract::{AnswerType, LEAST_SERVER_MEMORY, ToolDescription};
use kitbag::mcp::Server;
use kitbag::{
    Answer, Caller, Cancellation, Concurrency, ErrorInfo, Invocation, Kitbag, NativeCall,
    NativeTool, Outcome, Places, Question, ToolboxError,
};
use serde_json::{Value, json};

use crate::support::{CallInTest, Workspace, guest};

type BoxedWork<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// A native tool that runs a closure of the test.
struct Native<F> {
    schema: Value,
    work: F,
}

impl<F> NativeTool for Native<F>
where
    F: for<'a> Fn(NativeCall<'a>) -> BoxedWork<'a> + Send + Sync,
{
    fn description(&self) -> ToolDescription {
        ToolDescription {
            name: "native".into(),
            description: Some("A tool of the program's own.".into()),
            input_schema: Some(self.schema.clone()),
            ..ToolDescription::default()
        }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> BoxedWork<'a> {
        (self.work)(call)
    }
}

/// Lets the compiler infer the closure as the work of a tool.
fn closure<F>(work: F) -> F
where
    F: for<'a> Fn(NativeCall<'a>) -> BoxedWork<'a> + Send + Sync,
{
    work
}

/// A tool that takes any arguments.
fn native<F>(work: F) -> Native<F>
where
    F: for<'a> Fn(NativeCall<'a>) -> BoxedWork<'a> + Send + Sync,
{
    Native { schema: json!({ "type": "object" }), work }
}

/// Calls another tool and returns its answer.
async fn forward(call: &NativeCall<'_>, tool: &str, arguments: Value) -> Outcome {
    match call.call(Invocation::tool(tool, arguments)).await {
        Ok(outcome) => outcome,
        Err(error) => {
            Outcome::Error(ErrorInfo { message: error.to_string(), ..ErrorInfo::default() })
        }
    }
}

/// One call at a time, so that an inner call only has the permit of its outer call.
fn kitbag(workspace: &Workspace, tool: impl NativeTool + 'static) -> Kitbag {
    let builder = workspace.builder();
    let concurrency = Concurrency { calls: NonZeroUsize::MIN, waiting: 0 };
    builder.concurrency(concurrency).tool(tool).build().unwrap()
}

#[test]
fn the_arguments_of_a_native_tool_are_checked_and_completed() {
    let workspace = Workspace::new();
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string" }, "times": { "type": "integer", "default": 2 } },
        "required": ["text"],
        "additionalProperties": false,
    });
    let work = closure(|call| {
        let text = json!(call.arguments()).to_string();
        Box::pin(async move { Outcome::Success(text) })
    });
    let kitbag = kitbag(&workspace, Native { schema, work });
    let got = kitbag.call_in_test("native", json!({ "text": "a" }));
    assert_eq!(got, r#"{"text":"a","times":2}"#);
    let got = kitbag.call_in_test("native", json!({ "text": true, "more": true }));
    assert!(got.starts_with("failed: invalid arguments for `native`"), "{got}");
}

#[test]
fn a_native_tool_asks_and_is_called_again_with_the_answer() {
    let workspace = Workspace::new();
    let work = closure(|call| {
        let answer = call.answers().get("sure").cloned();
        Box::pin(async move {
            match answer {
                Some(answer) => Outcome::Success(answer.to_string()),
                None => Outcome::NeedsInput(Question {
                    id: "sure".into(),
                    text: "Sure?".into(),
                    answer_type: AnswerType::Boolean,
                    default: None,
                    is_consent: false,
                    class: None,
                    asker: None,
                    approval: None,
                }),
            }
        })
    });
    let builder = workspace.builder().tool(native(work));
    let kitbag = builder.on_question(|_| async { Some(Answer::Json(true.into())) }).build();
    assert_eq!(kitbag.unwrap().call_in_test("native", json!({})), "true");
}

#[test]
fn later_tools_obey_the_users_rules_for_their_names() {
    let workspace = Workspace::new();
    workspace.own_config("[tools.native]\napprove = \"always\"\n[tools.probe]\nenable = false\n");
    let mut kitbag = workspace.kitbag();
    let tool = native(closure(|_| Box::pin(async { Outcome::Success("done".into()) })));
    let reason = "config.toml:1:8 has rules for a tool with this name";
    let error = kitbag.add_tool(tool).unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
    let component = fs::read(guest("probe")).unwrap();
    let error = kitbag.add_component("probe", component.clone()).unwrap_err();
    assert!(matches!(error, ToolboxError::Register { .. }), "{error}");
    // Tools that exist from the start obey them.
    let kitbag = workspace.builder().component("probe", component).build().unwrap();
    assert!(!kitbag.toolbox().config().tools["probe"].is_enabled());
}

#[test]
fn the_time_of_a_native_tool_is_limited() {
    let workspace = Workspace::new();
    workspace.config("[limits]\ntime = \"50ms\"\n");
    let kitbag = kitbag(&workspace, native(closure(|_| Box::pin(pending()))));
    assert_eq!(
        kitbag.call_in_test("native", json!({})),
        "failed: limit: time (50ms): request less, or a part of it"
    );
}

#[test]
fn the_output_of_a_native_tool_is_limited() {
    let workspace = Workspace::new();
    workspace.config("[limits]\noutput = \"1KiB\"\n");
    let work = closure(|_| Box::pin(async { Outcome::Success("x".repeat(10_000)) }));
    let got = kitbag(&workspace, native(work)).call_in_test("native", json!({}));
    assert!(got.len() < 1100 && got.ends_with("[cut by kitbag: this answer had 10000 bytes]"));
}

#[test]
fn a_native_tool_calls_a_tool_with_the_permit_of_its_own_call() {
    let workspace = Workspace::with_probe("");
    let work = closure(|call| {
        Box::pin(async move {
            forward(&call, "probe", json!({ "do": "sleep", "ms": 1 })).await;
            forward(&call, "probe", json!({ "do": "echo", "text": "inner" })).await
        })
    });
    let kitbag = kitbag(&workspace, native(work));
    assert_eq!(kitbag.call_in_test("native", json!({})), "inner");
    // Also on the thread of the caller.
    let outcome = kitbag.call_blocking("native", json!({}), &Cancellation::default()).unwrap();
    assert_eq!(outcome, Outcome::Success("inner".into()));
}

#[test]
fn cancelling_a_call_ends_the_call_inside_it() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\n\
         filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    );
    // The inner call creates its file, and then waits for a file that never appears, or loops.
    for (file, until, then) in [("waits", "never", ""), ("spins", "waits", "spin")] {
        let arguments = json!({ "do": "gather", "path": file, "until": until, "then": then });
        let work = closure(move |call| {
            let arguments = arguments.clone();
            Box::pin(async move { forward(&call, "probe", arguments).await })
        });
        let kitbag = kitbag(&workspace, native(work));
        let cancellation = Cancellation::default();
        std::thread::scope(|scope| {
            let call = scope.spawn(|| kitbag.call_blocking("native", json!({}), &cancellation));
            while !workspace.path(file).exists() && !call.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            cancellation.cancel();
            assert_eq!(call.join().unwrap().unwrap_err().to_string(), "cancelled");
        });
    }
}

#[test]
fn the_end_of_a_calls_time_ends_the_call_inside_it() {
    let tables = "[limits]\ntime = \"100ms\"\n[tools.probe.limits]\ntime = \"30s\"\n";
    let workspace = Workspace::with_probe(tables);
    for action in ["spin", "sleep"] {
        let inner = Arc::<Mutex<Option<Outcome>>>::default();
        let noted = Arc::clone(&inner);
        let work = closure(move |call| {
            let noted = Arc::clone(&noted);
            Box::pin(async move {
                let arguments = json!({ "do": action, "ms": 3_600_000 });
                let outcome = forward(&call, "probe", arguments).await;
                *noted.lock().unwrap() = Some(outcome.clone());
                outcome
            })
        });
        let kitbag = kitbag(&workspace, native(work));
        let got = kitbag.call_in_test("native", json!({}));
        assert_eq!(got, "failed: limit: time (100ms): request less, or a part of it");
        // A guest that sleeps is dropped together with its outer call.
        if action == "spin" {
            let Some(Outcome::Error(error)) = inner.lock().unwrap().take() else { panic!() };
            assert_eq!(
                error.message,
                "limit: time (that of the calling tool): request less, or a part of it"
            );
        }
    }
}

#[test]
fn calls_nest_four_deep_and_no_deeper() {
    let workspace = Workspace::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let work = closure(move |call| {
        counter.fetch_add(1, Ordering::Relaxed);
        let caller = call.caller().to_string();
        assert!(caller == "tool native" || caller == "program program", "{caller}");
        Box::pin(async move { forward(&call, "native", json!({})).await })
    });
    let got = kitbag(&workspace, native(work)).call_in_test("native", json!({}));
    let expected = "error: nested calls are limited to 4 levels (called from tool native)";
    assert_eq!(got, expected);
    assert_eq!(runs.load(Ordering::Relaxed), 4);
}

#[test]
fn nested_calls_share_the_permit_of_the_outermost() {
    const CALLS: usize = 4;
    let workspace = Workspace::with_probe("");
    // All calls reach the third level before they continue.
    let (held, go_on) = (Arc::new(Barrier::new(CALLS + 1)), Arc::new(Barrier::new(CALLS + 1)));
    let barriers = (Arc::clone(&held), Arc::clone(&go_on));
    let work = closure(move |call| {
        let (held, go_on) = barriers.clone();
        Box::pin(async move {
            let level = call.arguments()["level"].as_u64().unwrap();
            if level < 3 {
                return forward(&call, "native", json!({ "level": level + 1 })).await;
            }
            held.wait();
            go_on.wait();
            // One after the other, each with its own memory.
            forward(&call, "probe", json!({ "do": "state" })).await;
            forward(&call, "probe", json!({ "do": "echo", "text": "innermost" })).await
        })
    });
    let concurrency = Concurrency { calls: CALLS.try_into().unwrap(), waiting: 0 };
    let builder = workspace.builder().concurrency(concurrency).memory(LEAST_SERVER_MEMORY);
    let kitbag = builder.tool(native(work)).build().unwrap();
    kitbag.toolbox().load("probe").unwrap();
    std::thread::scope(|scope| {
        let call = || kitbag.call_in_test("native", json!({ "level": 1 }));
        let calls: Vec<_> = (0..CALLS).map(|_| scope.spawn(call)).collect();
        held.wait();
        let got = kitbag.call_in_test("probe", json!({ "do": "echo", "text": "x" }));
        assert!(got.starts_with("failed: busy: "), "{got}");
        go_on.wait();
        for call in calls {
            assert_eq!(call.join().unwrap(), "innermost");
        }
    });
    let got = kitbag.call_in_test("probe", json!({ "do": "echo", "text": "x" }));
    assert_eq!(got, "x");
}

#[test]
fn an_existing_tool_name_is_refused() {
    let workspace = Workspace::new();
    let work = closure(|_| Box::pin(async { Outcome::Success("x".into()) }));
    let mut kitbag = kitbag(&workspace, native(work));
    let error = kitbag.add_tool(native(work)).unwrap_err();
    let expected =
        "the tool `native` cannot be registered: a tool with this name exists; remove it first";
    assert_eq!(error.to_string(), expected);
    kitbag.remove_tool("native").unwrap();
    assert!(matches!(kitbag.remove_tool("learn"), Err(ToolboxError::UnknownTool { .. })));
    kitbag.add_tool(native(work)).unwrap();
    assert_eq!(kitbag.call_in_test("native", json!({})), "x");
}

/// A server in this process, connected to the test by pipes.
#[test]
fn a_server_keeps_program_tools_when_files_change() {
    let workspace = Workspace::with_probe("");
    let work = closure(|call| {
        assert_eq!(*call.caller(), Caller::Client("stdio".into()));
        Box::pin(async move {
            // The future of the tool runs in the server's runtime.
            let spawned = tokio::spawn(async { "inner" }).await.unwrap();
            forward(&call, "probe", json!({ "do": "echo", "text": spawned })).await
        })
    });
    let mut kitbag = workspace.kitbag();
    // The reloaded configuration does not contain the program's tools.
    let root = workspace.root();
    let places = Places {
        cache: Some(workspace.cache().to_owned()),
        user_file: Some(workspace.own_config_file()),
        ..Places::default()
    };
    let host = kitbag.toolbox().host().clone();
    let load = Box::new(move || {
        let builder = Kitbag::builder()
            .workspace(&root)
            .places(places.clone())
            .trust_workspace(true)
            .host(host.clone());
        builder.build().map(|kitbag| kitbag.toolbox().clone()).map_err(|error| error.to_string())
    });
    let server = Server::new(kitbag.toolbox().clone(), load, None).unwrap();
    let (input, mut requests) = std::io::pipe().unwrap();
    let (messages, output) = std::io::pipe().unwrap();
    let mut messages = BufReader::new(messages).lines();
    let mut next = move || -> Value {
        serde_json::from_str(&messages.next().expect("a message").unwrap()).unwrap()
    };
    let mut send = move |message: Value| writeln!(requests, "{message}").unwrap();
    let serving = server.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(serving.serve_stdio(input.into(), output.into())).unwrap();
    });
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    } }));
    assert_eq!(next()["id"], 1);
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let list = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
    let names = |answer: Value| -> Vec<String> {
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    send(list(2));
    assert_eq!(names(next()), ["learn", "probe"]);
    kitbag.add_tool(native(work)).unwrap();
    server.set_toolbox(kitbag.toolbox().clone());
    assert_eq!(next()["method"], "notifications/tools/list_changed");
    send(list(3));
    assert_eq!(names(next()), ["learn", "native", "probe"]);
    send(json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {
        "name": "native", "arguments": {},
    } }));
    assert_eq!(next()["result"]["content"][0]["text"], "inner");
    // A component that the program has as bytes, with its own description.
    kitbag.add_component("brought", fs::read(guest("probe")).unwrap()).unwrap();
    kitbag.toolbox().load("brought").unwrap();
    server.set_toolbox(kitbag.toolbox().clone());
    assert_eq!(next()["method"], "notifications/tools/list_changed");
    send(list(5));
    let answer = next();
    assert_eq!(answer["result"]["tools"][0]["title"], "Probe", "{answer}");
    assert_eq!(names(answer), ["brought", "learn", "native", "probe"]);
    // Both tools remain when files change.
    server.watch().unwrap();
    workspace.config("[tools.learn]\nenable = false\n");
    assert_eq!(next()["method"], "notifications/tools/list_changed");
    send(list(6));
    assert_eq!(names(next()), ["brought", "native"]);
    send(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "brought", "arguments": { "do": "echo", "text": "bytes" },
    } }));
    assert_eq!(next()["result"]["content"][0]["text"], "bytes");
    kitbag.remove_tool("native").unwrap();
    kitbag.remove_tool("brought").unwrap();
    server.set_toolbox(kitbag.toolbox().clone());
    assert_eq!(next()["method"], "notifications/tools/list_changed");
    drop(send);
    thread.join().unwrap();
}

#[test]
fn the_example_of_a_native_tool_runs() {
    let stdout = crate::support::cargo_run(&["--example", "native"]);
    assert!(stdout.trim_end().ends_with(" lines"), "{stdout}");
}
