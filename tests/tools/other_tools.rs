//! Inner calls of other tools, through the binary and the server.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Run, Workspace, guest};

/// The tools: `relay` calls other tools as its arguments specify, with these grants; `probe`
/// performs the requested action; `keep` counts its runs.
fn workspace(tools: &str) -> Workspace {
    let workspace = Workspace::new();
    let tool = |name: &str, file: &str, grants: &str| {
        tool(name, file, &format!("[tools.{name}.grants]\nfilesystem = []\n{grants}\n"))
    };
    workspace.own_config(
        &[
            tool("relay", "relay", &format!("tools = {tools}")),
            tool("probe", "probe", ""),
            tool("keep", "keep", "storage = true"),
        ]
        .concat(),
    );
    workspace
}

fn tool(name: &str, file: &str, tables: &str) -> String {
    format!("[tools.{name}]\nsource = \"local\"\nwasm = {:?}\n{tables}", guest(file))
}

/// The tools `relay` and `probe`, which changes the files of the workspace, with these additional
/// tables.
fn workspace_of_files(tables: &str) -> Workspace {
    let workspace = Workspace::new();
    let calls = "[tools.relay.grants]\ntools = { probe = \"probe\" }\n";
    let files = "[tools.probe.grants]\n\
                 filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n";
    workspace.own_config(
        &[&tool("relay", "relay", calls), &tool("probe", "probe", files), tables].concat(),
    );
    workspace
}

/// A call that creates its file to show that it has started, and then waits for a file that never
/// appears, or loops once a file exists.
fn endless(file: &str, loops: bool) -> Value {
    let (until, then) = if loops { (file, "spin") } else { ("never", "") };
    call("probe", json!({ "do": "gather", "path": file, "until": until, "then": then }))
}

const ALL: &str = "{ probe = \"probe\", count = \"keep\" }";

fn relay(workspace: &Workspace, steps: &Value, more: &[&str]) -> Run {
    let arguments = json!({ "steps": steps }).to_string();
    workspace.run(&[&["run", "relay", "--args", &arguments], more].concat())
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "call": { "tool": tool, "arguments": arguments } })
}

fn echo(text: &str) -> Value {
    call("probe", json!({ "do": "echo", "text": text }))
}

/// A call that counts up, so that its answer contains the number of calls.
fn count() -> Value {
    call("count", json!({ "action": "increment", "key": "n" }))
}

fn counted(workspace: &Workspace) -> String {
    let get = json!({ "action": "get", "key": "n" }).to_string();
    workspace.run(&["run", "keep", "--args", &get]).success().trim_end().to_owned()
}

#[test]
fn concurrent_inner_calls_are_taken_as_they_end() {
    let workspace = workspace(ALL);
    let start = |milliseconds: u64| {
        let arguments = json!({ "do": "sleep", "ms": milliseconds });
        json!({ "start": { "tool": "probe", "arguments": arguments } })
    };
    let said = relay(&workspace, &json!([start(400), start(1), "finish"]), &[]).success();
    let said: Vec<_> = said.lines().collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains('1') && said[1].contains("400"), "{said:?}");
}

#[test]
fn ctrl_c_cancels_an_inner_call_with_its_outer_one() {
    let workspace = workspace_of_files("[limits]\ntime = \"1h\"\n");
    for (file, loops) in [("loops", true), ("waits", false)] {
        let arguments = json!({ "steps": [endless(file, loops)] }).to_string();
        let mut command = workspace.command();
        command.args(["run", "relay", "--args", &arguments, "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !workspace.path(file).exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(130), "{stdout}");
        assert!(stdout.starts_with(r#"{"outcome":"failed","kind":"cancelled""#), "{stdout}");
    }
}

/// Sends this many calls of `relay` whose inner calls are endless, and returns their IDs when one
/// of the inner calls has started.
fn send_endless(client: &mut Client, workspace: &Workspace, calls: u32) -> Vec<u64> {
    let file = |number: u32| format!("begun-{number}");
    let send = |number| {
        let steps = [endless(&file(number), number % 2 == 0)];
        client.send("tools/call", json!({ "name": "relay", "arguments": { "steps": steps } }))
    };
    let ids = (0..calls).map(send).collect();
    while !(0..calls).any(|number| workspace.path(&file(number)).exists()) {
        assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    }
    ids
}

#[test]
fn cancelling_a_call_over_mcp_ends_its_inner_calls() {
    // A time limit that no call reaches, however slow the machine is.
    let workspace = workspace_of_files("[limits]\ntime = \"1h\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    // More than the number of call slots.
    let ids = send_endless(&mut client, &workspace, 100);
    for id in &ids {
        client.notify("notifications/cancelled", json!({ "requestId": id }));
    }
    // It only runs when the other calls have left their slots.
    let answer = client.call("relay", json!({ "steps": [echo("after")] }));
    assert_eq!(answer["content"][0]["text"], "ok after", "{answer}");
    let others = client.others();
    let is_given_up = |it: &Value| it["id"].as_u64().is_some_and(|id| ids.contains(&id));
    assert!(!others.iter().any(is_given_up), "{others:?}");
}

#[test]
fn the_time_of_an_outer_call_ends_its_inner_calls() {
    let workspace = workspace_of_files(
        "[tools.relay.limits]\ntime = \"1s\"\n[tools.probe.limits]\ntime = \"1h\"\n",
    );
    let mut client = Client::with_handshake(&workspace, json!({}));
    for id in send_endless(&mut client, &workspace, 8) {
        let answer = client.answer(id);
        // The outer tool cannot report the result of the inner call as if it had completed.
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("limit: time (1s): request less, or a part of it"), "{answer}");
    }
    let answer = client.call("relay", json!({ "steps": [echo("after")] }));
    assert_eq!(answer["content"][0]["text"], "ok after", "{answer}");
}

fn steps_with_a_question() -> Value {
    let ask = call("probe", json!({ "do": "ask" }));
    json!({ "name": "relay", "arguments": { "steps": [
        "readings", count(), ask, count(), { "ask": { "text": "Sure?" } }, "readings", count(),
    ] } })
}

#[track_caller]
fn check_answer(answer: &Value, workspace: &Workspace) {
    let text = answer["content"][0]["text"].as_str().unwrap_or_default();
    let said: Vec<_> = text.lines().collect();
    assert_eq!(said.len(), 7, "{answer}");
    let expected = ["ok 1", "ok ask: {\"go-on\":true}", "ok 2", "own: true"];
    assert_eq!(said[1..5], expected, "{answer}");
    assert_eq!(said[6], "ok 3", "{answer}");
    assert_eq!(counted(workspace), "3");
}

#[test]
fn a_person_answers_inner_questions_with_a_handshake() {
    let workspace = workspace(ALL);
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    let id = client.send("tools/call", steps_with_a_question());
    let accept = |id: &str| json!({ "action": "accept", "content": { id: true } });
    let asked = client.reply("elicitation/create", accept("1/probe/go-on"));
    assert_eq!(asked["message"], "`probe` asks: Go on?");
    let asked = client.reply("elicitation/create", accept("own"));
    assert_eq!(asked["message"], "`relay` asks: Sure?");
    check_answer(&client.answer(id)["result"], &workspace);
}

#[test]
fn a_stateless_client_resumes_the_call() {
    let workspace = workspace(ALL);
    let mut client = Client::stateless(&workspace, json!({ "elicitation": {} }));
    let mut call = steps_with_a_question();
    for id in ["1/probe/go-on", "own"] {
        let asked = client.request("tools/call", call.clone())["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        call["requestState"] = asked["requestState"].clone();
        let accept = json!({ "action": "accept", "content": { id: true } });
        call["inputResponses"] = json!({ id: accept });
    }
    let used = call.clone();
    check_answer(&client.request("tools/call", call)["result"], &workspace);
    // A state can be resumed once.
    let again = client.request("tools/call", used);
    let message = again["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the call cannot be resumed"), "{again}");
    assert_eq!(counted(&workspace), "3");
}

#[test]
fn a_client_without_forms_forwards_its_users_answers() {
    let workspace = workspace(ALL);
    let mut client = Client::with_handshake(&workspace, json!({}));
    let mut call = steps_with_a_question();
    for (id, _) in [("1/probe/go-on", 1), ("own", 2)] {
        let asked = client.request("tools/call", call.clone())["result"].clone();
        assert_eq!(asked["isError"], true, "{asked}");
        let text = asked["content"][0]["text"].as_str().unwrap();
        let example = text.split_once("`_answers`: ").unwrap().1;
        let end = example.rfind("}}").unwrap() + 2;
        let mut example: Value = serde_json::from_str(&example[..end]).unwrap();
        example["_answers"][id] = json!("yes");
        call["arguments"]["_answers"] = example["_answers"].clone();
    }
    check_answer(&client.request("tools/call", call)["result"], &workspace);
}

#[test]
fn a_question_of_an_inner_call_repeats_no_work() {
    let workspace = workspace(ALL);
    let ask = call("probe", json!({ "do": "ask" }));
    let steps = json!(["readings", count(), ask, count(), { "log": { "text": "once" } }]);
    let run = relay(&workspace, &steps, &[]);
    assert_eq!(run.code, 3, "{}", run.shown());
    assert!(run.stderr.contains("the tool asks `1/probe/go-on`: Go on?"), "{}", run.shown());
    assert!(run.stderr.contains("--answer 1/probe/go-on="), "{}", run.shown());
    assert_eq!(counted(&workspace), "1");
    let run = relay(&workspace, &steps, &["--answer", "1/probe/go-on=yes"]);
    let said = run.success();
    assert!(said.ends_with("ok 2\nok ask: {\"go-on\":true}\nok 3\n"), "{said}");
    assert_eq!(counted(&workspace), "3");
}
