//! Small data of a tool or a client that would be large after parsing: its cost for the host is
//! bounded by counting before building.
//!
//! The commands run under a limit on their private writable memory, which would end them without
//! the count; a server reports its peak memory.

use kitbag::base::ByteSize;
use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Run, Workspace, crafted, snapshot};

/// Memory limit of a command: a few times the limit of a call.
const DATA: ByteSize = ByteSize::mib(320);

/// Limit for the peak memory of a server, in KiB.
const PEAK_KIB: u64 = 320 << 10;

/// A workspace whose tool `odd` is this component.
fn odd(component: &[u8]) -> Workspace {
    let workspace = Workspace::with_own_cache();
    workspace.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    workspace.file("odd.wasm", component);
    workspace
}

/// A description that has `size` bytes and consists of small arrays.
fn small_arrays(size: usize) -> Vec<u8> {
    let start = r#"{"name":"odd","description":"odd","inputSchema":{"x":["#;
    crafted::describing_again(start, "[0],", size / 4, "0]}}")
}

fn run_all(workspace: &Workspace, commands: &[&[&str]]) -> Vec<Run> {
    commands.iter().map(|command| workspace.run_within(DATA, command)).collect()
}

#[test]
fn a_description_of_many_values_is_refused_before_building() {
    let mut report = String::new();
    for (about, component) in [
        ("16 MiB of small arrays.", small_arrays(16 << 20)),
        ("256 KiB of small arrays.", small_arrays((256 << 10) - 100)),
        (
            "A long text.",
            crafted::describing_again(r#"{"name":"odd","description":""#, "x", 300_000, "\"}"),
        ),
        ("No description at all.", crafted::describing("[1,")),
    ] {
        let workspace = odd(&component);
        let commands: [&[&str]; 4] = [
            &["check"],
            &["check", "--json"],
            &["run", "odd"],
            &["export", "odd", "--format", "mcp"],
        ];
        for (command, run) in commands.iter().zip(run_all(&workspace, &commands)) {
            report.push_str(&format!(
                "# {about}\n$ kitbag {}\n{}\n",
                command.join(" "),
                run.shown()
            ));
        }
    }
    snapshot!("descriptions", &report);
}

#[test]
fn a_server_omits_an_oversized_description() {
    let workspace = odd(&small_arrays(4 << 20));
    let mut client = Client::with_handshake(&workspace, json!({}));
    let before = client.memory_kib("VmHWM");
    client.call("odd", json!({}));
    for _ in 0..5 {
        let tools = client.request("tools/list", json!({}));
        let tools = tools["result"]["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool["name"] == "odd"), "{tools:?}");
    }
    let after = client.memory_kib("VmHWM");
    let (_, stderr) = client.close();
    assert!(stderr.contains("`odd`") && stderr.contains("description"), "{stderr}");
    assert!(after < before + (128 << 10), "{before} KiB, then {after} KiB");
}

#[test]
fn defaults_use_the_limits_of_arguments() {
    let start = r#"{"name":"odd","inputSchema":{"type":"object","properties":{"list":{"type":"array",
        "items":{"type":"object","properties":{"text":{"default":""#;
    let workspace = odd(&crafted::describing_again(start, "x", 100_000, "\"}}}}}}}"));
    let list = |elements: usize| {
        let list = vec![json!({}); elements];
        workspace.file("arguments.json", json!({ "list": list }).to_string())
    };
    let run = |elements: usize| {
        let file = format!("@{}", list(elements).display());
        workspace.run_within(DATA, &["run", "odd", "--args", &file])
    };
    assert_eq!(run(5).success(), "ok\n");
    let refused = run(13_000);
    assert_eq!(refused.code, 2, "{}", refused.shown());
    snapshot!("defaults", &refused.shown());

    let mut client = Client::with_handshake(&workspace, json!({}));
    for _ in 0..4 {
        let answer = client.call("odd", json!({ "list": vec![json!({}); 100_000] }));
        assert_eq!(answer["isError"], true, "{answer}");
    }
    let peak = client.memory_kib("VmHWM");
    assert!(peak < PEAK_KIB, "{peak} KiB");
}

#[test]
fn arguments_of_many_values_are_refused_before_building() {
    let workspace = Workspace::with_probe("");
    let text = |size: usize| {
        format!(r#"{{"do":"echo","text":"x","more":[{}0]}}"#, "[0],".repeat(size / 4))
    };
    let file = workspace.file("arguments.json", text((1 << 20) - 100));
    let file = format!("@{}", file.display());
    let run = workspace.run_within(ByteSize::mib(160), &["run", "probe", "--args", &file]);
    assert_eq!(run.code, 2, "{}", run.shown());
    snapshot!("arguments", &run.shown());

    let mut client = Client::with_handshake(&workspace, json!({}));
    client.call("probe", json!({ "do": "echo", "text": "x" }));
    let before = client.memory_kib("VmHWM");
    for size in [1 << 20, 3 << 20] {
        let params = format!(r#"{{"name":"probe","arguments":{}}}"#, text(size));
        let call = r#"{"jsonrpc":"2.0","method":"tools/call""#;
        client.write(&format!(r#"{call},"id":{size},"params":{params}}}"#));
        let answer = client.wait(|message| message["id"] == size);
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
    let after = client.memory_kib("VmHWM");
    assert!(after < before + (64 << 10), "{before} KiB, then {after} KiB");
    let long =
        json!({ "name": "probe", "arguments": { "do": "echo", "text": "x".repeat(3 << 20) } });
    let answer = client.request("tools/call", long);
    assert_eq!(
        answer["error"]["message"],
        "`arguments` of `tools/call` have 3145751 bytes, more than the limit of 1 MiB"
    );
}

#[test]
fn a_thousand_argument_problems_are_summarized() {
    let schema = json!({
        "type": "object",
        "properties": { "list": { "type": "array", "items": { "type": "string" } } },
        "additionalProperties": { "items": { "type": "string" } },
    });
    let description = json!({ "name": "odd", "inputSchema": schema }).to_string();
    let workspace = odd(&crafted::describing(&description));
    let call = |arguments: Value| {
        let file = workspace.file("arguments.json", arguments.to_string());
        let file = format!("@{}", file.display());
        workspace.run_within(DATA, &["run", "odd", "--json", "--args", &file])
    };
    let run = call(json!({ "list": vec![json!([]); 90_000] }));
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(run.stdout.len() + run.stderr.len() < 32 << 10, "{} bytes", run.stdout.len());
    assert!(run.shown().contains("further problems are not listed"), "{}", run.shown());
    // The location of each problem would repeat the key.
    let run = call(json!({ "k".repeat(500_000): vec![json!([]); 90_000] }));
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(run.stdout.len() + run.stderr.len() < 32 << 10, "{} bytes", run.stdout.len());
}

#[test]
fn an_answer_of_many_parts_costs_little_memory() {
    let component = crafted::same_text_again(600_000, 1);
    let workspace = odd(&component);
    let [json, text] = &run_all(&workspace, &[&["run", "odd", "--json"], &["run", "odd"]])[..]
    else {
        unreachable!("two commands")
    };
    assert_eq!((json.code, text.code), (1, 1), "{}", text.shown());
    let trace = json.json()["error"]["trace"].as_array().unwrap().clone();
    assert_eq!(trace.len(), 1_001);
    assert_eq!(trace[1_000], "[cut by kitbag: this trace had 600000 lines]");
    assert!(text.stderr.len() < 32 << 10, "{} bytes", text.stderr.len());

    let mut client = Client::with_handshake(&workspace, json!({}));
    for _ in 0..4 {
        client.call("odd", json!({}));
    }
    let peak = client.memory_kib("VmHWM");
    assert!(peak < PEAK_KIB, "{peak} KiB");
}

#[test]
fn an_idle_server_frees_the_memory_of_calls() {
    check_idle(&crafted::full_memories(15, 64));
    let fill = "(drop (memory.grow (i32.const 900)))
        (memory.fill (i32.const 65536) (i32.const 1) (i32.const 58000000))";
    check_idle(&crafted::tool_with_core("", fill));
}

/// Runs calls of this component in all slots of a server, and checks the memory that the server
/// keeps.
#[track_caller]
fn check_idle(component: &[u8]) {
    let workspace = odd(component);
    let mut client = Client::with_handshake(&workspace, json!({}));
    client.call("odd", json!({}));
    let first = client.memory_kib("VmRSS");
    // More calls than slots, so that each slot has had a call.
    let calls: Vec<_> = (0..64)
        .map(|_| client.send("tools/call", json!({ "name": "odd", "arguments": {} })))
        .collect();
    for call in calls {
        let answer = client.answer(call);
        assert!(answer.get("error").is_none(), "{answer}");
    }
    let after = client.memory_kib("VmRSS");
    assert!(after < first + (160 << 10), "{first} KiB, then {after} KiB");
}
