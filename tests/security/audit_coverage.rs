//! Every run of a component is in the audit log, for each kind of invocation, and obeys the rules
//! of its tool.

use std::fs;
use std::process::Stdio;

use kitbag::config::{Origin, Sourced};
use kitbag::contract::{PromptArgument, PromptDescription, ToolName};
use kitbag::toolbox::{InvocationKind, ServedItem};
use kitbag::{CallContext, Invocation, Kitbag, Places};
use kitbag_test_servers::{Behaviour, Server};
use serde_json::{Map, Value, json};

use crate::support::mcp::Client;
use crate::support::{Workspace, block_on, guest, until};

/// The lines of the log, as JSON.
fn lines(workspace: &Workspace) -> Vec<Value> {
    let stdout = workspace.run(&["audit", "--json", "--all"]).success();
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// The outermost calls, as `TOOL SERVES OUTCOME REASON`.
fn outermost(workspace: &Workspace) -> Vec<String> {
    let lines = lines(workspace);
    let calls = lines.iter().filter(|it| it["event"] == "call" && it["parent"].is_null());
    let keys = ["tool", "serves", "outcome", "reason"];
    calls
        .map(|call| {
            let words = keys.map(|key| text(call, key));
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// The next kind after this one: a new kind does not compile without an entry here.
fn next(kind: Option<InvocationKind>) -> Option<InvocationKind> {
    match kind {
        None => Some(InvocationKind::Tool),
        Some(InvocationKind::Tool) => Some(InvocationKind::Prompt),
        Some(InvocationKind::Prompt) => Some(InvocationKind::Resource),
        Some(InvocationKind::Resource) => Some(InvocationKind::Command),
        Some(InvocationKind::Command) => Some(InvocationKind::Knowledge),
        Some(InvocationKind::Knowledge) => None,
    }
}

/// The library on a workspace, with an audit log.
fn kitbag(workspace: &Workspace) -> Kitbag {
    let state = workspace.home().join(".local/state/kitbag");
    let places = Places {
        cache: Some(workspace.cache().to_owned()),
        user_file: Some(workspace.own_config_file()),
        state: Some(Sourced { value: state, origin: Origin::Default }),
        ..Places::default()
    };
    let kitbag = Kitbag::builder().workspace(workspace.root()).places(places);
    kitbag.trust_workspace(true).build().unwrap()
}

#[test]
fn every_kind_of_invocation_is_audited() {
    let workspace = Workspace::with_toolsets(&["files", "write", "memory", "learn"]);
    let relay = guest("relay");
    workspace.own_config(&format!(
        "[tools.relay]\nsource = \"local\"\nwasm = {relay:?}\n\
         [tools.relay.grants]\ntools = {{ write = \"write_file\" }}\n"
    ));
    workspace.file("notes/a.md", "Learned.\n");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\nlearned = [\"a\"]\n");
    let kitbag = kitbag(&workspace);
    let steps = json!([{
        "call": { "tool": "write", "arguments": { "path": "out.txt", "content": "x" } },
    }]);
    let tool = |name: &str| ToolName::new(name).unwrap();
    let mut kind = None;
    while let Some(now) = next(kind) {
        kind = Some(now);
        let before = lines(&workspace).len();
        let _ = fs::remove_file(workspace.path("out.txt"));
        let relays = match now {
            InvocationKind::Tool => Some(Invocation::tool("relay", json!({ "steps": steps }))),
            InvocationKind::Prompt => {
                let argument =
                    PromptArgument { name: "steps".into(), required: true, ..Default::default() };
                let description = PromptDescription {
                    name: "relayed".into(),
                    arguments: vec![argument],
                    ..Default::default()
                };
                let item = ServedItem { tool: tool("relay"), description };
                let arguments = Map::from_iter([("steps".to_owned(), steps.to_string().into())]);
                Some(Invocation::prompt(item, arguments))
            }
            InvocationKind::Resource => {
                let uri = format!("relay:{steps}?secret=1");
                Some(Invocation::resource(tool("relay"), uri.trim_end_matches("?secret=1")))
            }
            InvocationKind::Command => {
                let arguments = Map::from_iter([("format".to_owned(), json!("json"))]);
                let name = tool("list_memories");
                let export = Invocation::command(name, "memory/export", arguments, Vec::new());
                block_on(kitbag.invoke(export)).unwrap();
                None
            }
            InvocationKind::Knowledge => {
                let block = kitbag.toolbox().knowledge_prompt(CallContext::default());
                assert!(block_on(block).unwrap().text.contains("Learned."));
                None
            }
        };
        let is_relayed = relays.is_some();
        if let Some(invocation) = relays {
            assert_eq!(invocation.kind(), now);
            block_on(kitbag.invoke(invocation)).unwrap();
            assert_eq!(fs::read_to_string(workspace.path("out.txt")).unwrap(), "x", "{now:?}");
        }
        kitbag.toolbox().auditor().unwrap().flush();
        let lines = lines(&workspace);
        let added = &lines[before..];
        let is_call = |line: &&Value| line["event"] == "call";
        let outer = added.iter().filter(is_call).find(|line| line["parent"].is_null());
        let outer = outer.unwrap_or_else(|| panic!("{now:?} has no line: {added:?}"));
        assert_eq!(outer["outcome"], "success", "{outer}");
        let serves = match now {
            InvocationKind::Tool => None,
            InvocationKind::Prompt => Some("prompt relayed".to_owned()),
            InvocationKind::Resource => Some(format!("resource relay:{steps}")),
            InvocationKind::Command => Some("command memory/export".to_owned()),
            InvocationKind::Knowledge => Some("knowledge prompt".to_owned()),
        };
        assert_eq!(outer["serves"].as_str(), serves.as_deref(), "{outer}");
        if !is_relayed {
            continue;
        }
        // The inner call has a parent in the log, and each call started before it ended.
        let inner = added.iter().filter(is_call).find(|line| line["tool"] == "write_file").unwrap();
        assert_eq!(inner["parent"], outer["id"]);
        assert_eq!(inner["paths"]["written"], json!(["out.txt"]));
        let at = |event: &str, call: &Value| {
            let is_it = |line: &Value| line["event"] == event && line["id"] == call["id"];
            added.iter().position(is_it).unwrap_or_else(|| panic!("{event}: {added:?}"))
        };
        for call in [outer, inner] {
            assert!(at("start", call) < at("call", call));
        }
        assert_eq!(added[at("start", outer)]["serves"].as_str(), serves.as_deref());
    }
}

/// A workspace with a topic, one of whose documents is learned.
fn knowing(own: &str) -> Workspace {
    let workspace = Workspace::with_toolsets(&["learn", "calc"]);
    workspace.file("notes/a.md", "Learned.\n");
    workspace.file("notes/b.md", "Not learned.\n");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\nlearned = [\"a\"]\n");
    workspace.own_config(own);
    workspace
}

/// The knowledge that a client receives: instructions, prompts, resources and completions.
fn knowledge(client: &mut Client) -> String {
    let mut all = String::new();
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "knowledge" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "kb://team/b" })),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/resource", "uri": "kb://{topic}/{+slug}" },
                "argument": { "name": "slug", "value": "" },
                "context": { "arguments": { "topic": "team" } },
            }),
        ),
    ] {
        let answer = client.request(method, params);
        let outcome = answer.get("result").or(answer.get("error")).unwrap();
        all.push_str(&format!("{method}: {outcome}\n"));
    }
    all
}

fn instructions(client: &mut Client) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "clientInfo": { "name": "test", "version": "1" },
        "capabilities": {},
    });
    let answer = client.request("initialize", params);
    client.notify("notifications/initialized", json!({}));
    answer["result"]["instructions"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn knowledge_is_absent_without_the_tool_learn() {
    let check = |own: &str, toolset: &str, arguments: &[&str]| {
        let workspace = knowing(own);
        workspace.add_to_own_config(toolset);
        let mut client = Client::start_with(&workspace, arguments, Stdio::null());
        assert_eq!(instructions(&mut client), "", "{own} {arguments:?}");
        let all = knowledge(&mut client);
        for absent in ["earned.", "kb://team/a", "kb://{topic}"] {
            assert!(!all.contains(absent), "{own} {arguments:?}: {all}");
        }
        assert!(all.contains("the tool `learn` is off"), "{own} {arguments:?}: {all}");
        assert!(all.contains("there is no prompt `knowledge`"), "{own} {arguments:?}: {all}");
        let answer = client.request("resources/subscribe", json!({ "uri": "kb://team/b" }));
        assert!(answer["error"].is_object(), "{answer}");
        let tools = client.request("tools/list", json!({}));
        assert_eq!(
            tools["result"]["tools"][0]["name"], "calculate",
            "the configuration is in effect"
        );
        drop(client.close());
        assert_eq!(outermost(&workspace), [""; 0]);
    };
    check("", "learn = false\n", &[]);
    check("[tools.learn]\nenable = false\n", "", &[]);
    check("[serve]\ntools = [\"calculate\"]\n", "", &[]);
    check("", "", &["--tools", "calculate"]);
    let workspace = knowing("[tools.learn]\nenable = false\n");
    let run = workspace.run(&["prompt"]);
    assert_eq!((run.code, &*run.stdout), (0, ""), "{}", run.shown());
    assert!(run.stderr.contains("the tool `learn` is off"), "{}", run.shown());
}

#[test]
fn knowledge_that_needs_approval_is_not_read_without_it() {
    let workspace = knowing("[tools.learn]\napprove = \"always\"\n");
    let mut client = Client::start_with(&workspace, &[], Stdio::null());
    assert_eq!(instructions(&mut client), "");
    let all = knowledge(&mut client);
    assert!(!all.contains("earned.") && !all.contains("kb://team/a"), "{all}");
    drop(client.close());
    let refused = outermost(&workspace);
    assert!(!refused.is_empty(), "each of them is a line");
    assert!(refused.iter().all(|call| call.ends_with("refused approval")), "{refused:?}");
    // A person can allow it.
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    let id = client.send("resources/read", json!({ "uri": "kb://team/b" }));
    let form = client.reply(
        "elicitation/create",
        json!({
            "action": "accept", "content": { "approve": "yes" },
        }),
    );
    assert!(form.to_string().contains("learn"), "{form}");
    let answer = client.answer(id);
    assert!(answer.to_string().contains("Not learned."), "{answer}");
    drop(client.close());
    assert_eq!(outermost(&workspace).last().unwrap(), "learn success");
}

#[test]
fn knowledge_uses_the_rate_and_is_audited() {
    let workspace = knowing("[tools.learn]\nrate = \"3/d\"\n");
    let mut client = Client::start_with(&workspace, &[], Stdio::null());
    assert!(instructions(&mut client).contains("Learned."));
    let read = json!({ "uri": "kb://team/b" });
    let answer = client.request("resources/read", read.clone());
    assert!(answer.to_string().contains("Not learned."), "{answer}");
    let answer = client.request("resources/list", json!({}));
    assert!(answer.to_string().contains("kb://team/b"), "{answer}");
    for (method, params) in [
        ("resources/read", read),
        ("prompts/get", json!({ "name": "knowledge" })),
        ("resources/list", json!({})),
    ] {
        let answer = client.request(method, params);
        assert!(!answer.to_string().contains("team/b\""), "{answer}");
        assert!(!answer.to_string().contains("earned."), "{answer}");
    }
    let answer = client.call("learn", json!({ "topic": "team", "subjects": ["b"] }));
    assert!(!answer.to_string().contains("Not learned."), "{answer}");
    drop(client.close());
    let expected = [
        "learn knowledge prompt success",
        "learn success",
        "learn knowledge names success",
        "learn refused rate",
        "learn knowledge prompt refused rate",
        "learn knowledge names refused rate",
        "learn refused rate",
    ];
    assert_eq!(outermost(&workspace), expected);
    let lines = lines(&workspace);
    assert!(lines.iter().all(|line| line["caller"] == "client stdio"), "{lines:?}");
}

#[test]
fn the_start_of_a_call_is_logged_before_a_kill() {
    let server = Server::start(Behaviour::Silent);
    let workspace = Workspace::with_toolsets(&["python", "calc"]);
    let (wasm, place) = (guest("request"), format!("{}/**", server.url()));
    workspace.own_config(&format!(
        "[tools.request]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.request.grants]\nhttp = [{{ url = {place:?}, methods = [\"*\"] }}]\n"
    ));
    let client = Client::start_with(&workspace, &[], Stdio::null());
    let mut client = client.after_handshake(json!({}));
    let code = format!("request(url={:?}, method='POST', body='x')", server.url());
    client.send("tools/call", json!({ "name": "python", "arguments": { "code": code } }));
    until(|| !server.seen().requests.is_empty());
    client.kill();
    let lines = lines(&workspace);
    let said: Vec<_> = lines
        .iter()
        .map(|line| format!("{} {}", text(line, "event"), text(line, "tool")))
        .collect();
    assert_eq!(said, ["start python", "start request"]);
    assert_eq!(lines[1]["parent"], lines[0]["id"]);
    assert_eq!(workspace.run(&["audit", "verify", "--json"]).json()["lines"], 1);
    let told = workspace.run(&["audit"]).success();
    let end = "began and has not ended: it still runs, or its process was stopped";
    assert!(told.contains(&format!("python {end}\n         request {end}")), "{told}");
    // A completed call is only represented by its end.
    workspace.run(&["run", "python", "code=1"]).success();
    let told = workspace.run(&["audit", "--caller", "user"]).success();
    assert_eq!(told.matches("began").count(), 0, "{told}");
    assert_eq!(workspace.run(&["audit", "--outcome", "unfinished"]).success().lines().count(), 3);
}

#[test]
fn scripts_cannot_push_calls_and_approvals_out_of_the_log() {
    let workspace = Workspace::with_toolsets(&["python", "files", "write"]);
    // The smallest log; details may use a third of it.
    workspace.own_config(
        "[audit]\nsize = \"1MiB\"\n[tools.write_file]\napprove = \"always\"\n\
         [tools.python.limits]\ntool_calls = 1000\n",
    );
    let run = workspace.run(&["run", "write_file", "--approve", "path=kept.txt", "content=x"]);
    run.success();
    let code = "code=for _ in range(120): list_dir(path='.')";
    for _ in 0..12 {
        workspace.run(&["run", "python", code]).success();
    }
    let lines = lines(&workspace);
    let of = |event: &str, tool: &str| {
        lines.iter().filter(|it| it["event"] == event && it["tool"] == tool).count()
    };
    assert_eq!((of("call", "write_file"), of("call", "python")), (1, 12));
    assert!(of("approval", "write_file") >= 1);
    let python = lines.iter().find(|it| it["event"] == "call" && it["tool"] == "python").unwrap();
    assert_eq!(python["more_calls"], 20, "{python}");
    let summary = lines.iter().rfind(|it| it["event"] == "summary").unwrap();
    let calls = summary["calls"].as_object().unwrap();
    assert_eq!(calls.values().filter_map(Value::as_u64).sum::<u64>(), 20, "{summary}");
    let told = workspace.run(&["audit", "--tool", "python"]).success();
    assert!(told.contains("and 20 more calls: 20 list_dir success"), "{told}");
    let verified = workspace.run(&["audit", "verify", "--json"]).json();
    assert_eq!((&verified["first"], &verified["removed"]), (&json!(0), &Value::Null));
    let details = &verified["details"];
    assert!(details["first"].as_u64() > Some(0), "{verified}");
    for key in ["lines", "from", "to", "time"] {
        assert!(!details["removed"][key].is_null(), "{key}: {verified}");
    }
    let told = workspace.run(&["audit", "verify"]).success();
    assert!(
        told.contains("inner calls and refusals: ") && told.contains("last removed: "),
        "{told}"
    );
}

#[test]
fn each_spelling_of_a_path_outside_is_logged() {
    let workspace = Workspace::with_toolsets(&["files", "write", "search", "python"]);
    let check = |tool: &str, arguments: Value, target: &str| {
        let before = lines(&workspace).len();
        let run = workspace.run(&["run", tool, "--args", &arguments.to_string()]);
        assert_ne!(run.code, 0, "{tool} {arguments}: {}", run.shown());
        let lines = lines(&workspace);
        let refusals = lines[before..].iter().filter(|line| line["event"] == "refusal");
        let said: Vec<_> = refusals
            .map(|refusal| ["kind", "target", "reason"].map(|key| text(refusal, key)))
            .collect();
        assert_eq!(said, [["file", target, "outside"]], "{tool} {arguments}");
    };
    check("read_file", json!({ "path": "/etc/shadow" }), "/etc/shadow");
    check("write_file", json!({ "path": "/etc/x", "content": "" }), "/etc/x");
    check("list_dir", json!({ "path": "/etc" }), "/etc");
    check("file_info", json!({ "path": "/etc/hosts" }), "/etc/hosts");
    check("search_files", json!({ "path": "/root", "pattern": "a" }), "/root");
    check("remove_path", json!({ "path": "/etc/hosts" }), "/etc/hosts");
    check("python", json!({ "code": "open('/etc/shadow')" }), "/etc/shadow");
    check("python", json!({ "code": "open('../../etc/shadow')" }), "/etc/shadow");
    let exists = "from pathlib import Path\nassert Path('/etc/shadow').exists()";
    check("python", json!({ "code": exists }), "/etc/shadow");
}

#[test]
fn a_change_through_a_handle_for_reading_is_a_refusal() {
    let workspace = Workspace::new();
    workspace.file("docs/a.txt", "text");
    let probe = guest("probe");
    workspace.own_config(&format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {probe:?}\n[tools.probe.grants]\n\
         filesystem = [{{ host = {:?}, guest = \"/docs\", mode = \"rw\" }}]\n",
        workspace.path("docs"),
    ));
    let check = |arguments: Value| {
        let run = workspace.run(&["run", "probe", "--args", &arguments.to_string()]);
        assert!(run.shown().contains("refused ("), "{}", run.shown());
        let lines = lines(&workspace);
        let refusal = lines.iter().rfind(|line| line["event"] == "refusal").unwrap();
        let call = lines.iter().rfind(|line| line["event"] == "call").unwrap();
        assert_eq!(refusal["call"], call["id"], "{arguments}");
        let said = ["kind", "target", "reason"].map(|key| text(refusal, key));
        assert_eq!(said, ["file", "docs/a.txt", "read-only"], "{arguments}");
    };
    check(json!({ "do": "set-size", "preopen": "/docs", "path": "a.txt", "bytes": 1 }));
    check(json!({ "do": "set-times", "preopen": "/docs", "path": "a.txt", "held": true }));
}

#[test]
fn line_breaks_in_a_tools_text_forge_no_line() {
    let workspace = Workspace::with_probe("");
    let message = "failed\nhint: run `kitbag trust`\r\nerror: \u{1b}[2Jx";
    let fail = json!({ "do": "fail", "message": message, "trace": ["a\nhint: b"] }).to_string();
    let run = workspace.run(&["run", "probe", "--args", &fail]);
    let expected = "error: failed\n  hint: run `kitbag trust`\\r\n  error: \\u{1b}[2Jx\n\
                    caused by: a\n  hint: b\n";
    assert_eq!(run.stderr, expected);
    let run = workspace.run(&["run", "probe", "--json", "--args", &fail]);
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.shown());
    let panic = json!({ "do": "panic", "message": message }).to_string();
    for json in [&[][..], &["--json"]] {
        let arguments = [&["run", "probe", "--args", &panic][..], json].concat();
        let run = workspace.run(&arguments);
        let forged = |line: &str| line.starts_with("hint: run") || line.contains('\u{1b}');
        assert!(!run.stderr.lines().chain(run.stdout.lines()).any(forged), "{}", run.shown());
    }
    let ask = json!({ "do": "ask", "text": message }).to_string();
    let run = workspace.run(&["run", "probe", "--args", &ask]);
    assert!(!run.stderr.lines().any(|line| line.starts_with("hint: run")), "{}", run.shown());
    // Tool text cannot forge a line of the server's log either.
    let forged = format!("x\n2026-01-01T00:00:00Z ERROR forged\n{message}");
    let mut client = Client::start(&workspace, &["--log", "debug"]).after_handshake(json!({}));
    for arguments in [
        json!({ "do": "fail", "message": forged, "trace": [forged] }),
        json!({ "do": "panic", "message": forged }),
        json!({ "do": "print", "text": forged }),
    ] {
        client.call("probe", arguments);
    }
    let (_, log) = client.close();
    assert!(log.contains("ERROR forged"), "{log}");
    assert!(!log.lines().any(|line| line.starts_with("2026-01-01T00")), "{log}");
    assert!(!log.lines().any(|line| line.starts_with("hint:")), "{log}");
    // Nor a line in the output of `kitbag audit`.
    let told = workspace.run(&["audit", "--all"]).success();
    assert!(!told.contains("forged") && !told.contains("hint:"), "{told}");
}
