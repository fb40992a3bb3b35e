//! The audit log, through the binary and the server.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use kitbag_test_servers::{Behaviour, Server};
use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Run, Workspace, guest};

fn directory(workspace: &Workspace) -> PathBuf {
    workspace.home().join(".local/state/kitbag/audit")
}

fn file(workspace: &Workspace) -> PathBuf {
    directory(workspace).join("audit-000001.jsonl")
}

/// The lines of the log that match, as JSON.
fn logged(workspace: &Workspace, options: &[&str]) -> Vec<Value> {
    let run = workspace.run(&[&["audit", "--json", "--all"], options].concat());
    let stdout = run.success();
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn verify(workspace: &Workspace) -> Value {
    workspace.run(&["audit", "verify", "--json"]).json()
}

fn calculate(workspace: &Workspace, expression: &str) -> Run {
    workspace.run(&["run", "calculate", &format!("expression={expression}")])
}

#[test]
fn each_call_is_a_line_with_who_made_it_and_how_it_ended() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    assert_eq!(workspace.run(&["audit"]).success(), "");
    assert_eq!(workspace.run(&["audit", "verify"]).success(), "nothing was logged yet\n");
    assert!(!workspace.home().join(".local").exists(), "looking makes nothing");
    calculate(&workspace, "1+1").success();
    assert_ne!(calculate(&workspace, "1+").code, 0);
    assert_eq!(workspace.run(&["run", "calculate", "no=1"]).code, 2);
    assert_eq!(workspace.run(&["run", "calculat"]).code, 2);
    let lines = logged(&workspace, &[]);
    let said = |line: &Value| {
        let field = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
        let (outcome, reason) = (field("outcome"), field("reason"));
        format!("{} {} {outcome} {reason}", field("event"), field("tool"))
    };
    let said: Vec<_> = lines.iter().map(said).collect();
    let expected =
        ["call calculate success -", "call calculate error -", "call calculate refused arguments"];
    assert_eq!(said, expected, "a name that is no tool is no call");
    let first = &lines[0];
    assert!(first["caller"].as_str().unwrap().starts_with("user "), "{first}");
    assert_eq!(first["workspace"], json!("<workspace>"), "as the harness shows it");
    assert!(first["component"].as_str().unwrap().starts_with("calc of kitbag "), "{first}");
    assert_eq!(first["arguments_digest"].as_str().unwrap().len(), 64);
    assert_eq!(first["arguments"], Value::Null, "they are not logged unless that is asked for");
    assert_ne!(first["id"], lines[1]["id"]);
    assert_eq!(first["grants"], lines[1]["grants"]);
    assert_eq!(verify(&workspace)["lines"], json!(3));
    assert_eq!(logged(&workspace, &["--outcome", "refused"]).len(), 1);
    assert_eq!(logged(&workspace, &["--tool", "learn"]).len(), 0);
    assert_eq!(logged(&workspace, &["--caller", "client"]).len(), 0);
    assert_eq!(logged(&workspace, &["--since", "1h"]).len(), 3);
    let shown = workspace.run(&["audit"]).success();
    assert!(shown.lines().nth(2).unwrap().contains("calculate  refused (arguments)  "), "{shown}");
}

#[test]
fn a_call_that_a_tool_makes_names_the_call_that_it_is_inside_of() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    let (relay, probe) = (guest("relay"), guest("probe"));
    workspace.own_config(&format!(
        "[audit]\narguments = true\n\
         [tools.relay]\nsource = \"local\"\nwasm = {relay:?}\n\
         [tools.relay.grants]\nfilesystem = []\ntools = {{ probe = \"probe\" }}\n\
         [tools.probe]\nsource = \"local\"\nwasm = {probe:?}\n"
    ));
    let arguments = json!({
        "steps": [{ "call": { "tool": "probe", "arguments": { "do": "echo", "text": "x" } } }],
    });
    workspace.run(&["run", "relay", "--args", &arguments.to_string()]).success();
    let lines = logged(&workspace, &[]);
    let [inner, outer] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&inner["tool"], &outer["tool"]), (&json!("probe"), &json!("relay")));
    assert_eq!(inner["parent"], outer["id"]);
    assert_eq!(inner["caller"], json!("tool relay"));
    assert_eq!(inner["arguments"]["text"], json!("x"));
    assert_eq!(outer["component"].as_str().unwrap().len(), 64, "the digest of its component");
    assert_ne!(outer["component"], inner["component"]);
}

#[test]
fn each_request_is_logged_with_what_allowed_it_or_what_it_was_refused_for() {
    let server = Server::start(Behaviour::Echo);
    let workspace = Workspace::with_toolsets(&["calc"]);
    let (wasm, grant) = (guest("request"), format!("{}/open/**", server.url()));
    workspace.own_config(&format!(
        "[tools.request]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.request.grants]\nhttp = [{grant:?}]\n"
    ));
    for (method, path) in [("GET", "/open/a?secret=1"), ("POST", "/open/b"), ("GET", "/closed")] {
        let url = format!("{}{path}", server.url());
        let arguments = json!({ "url": url, "method": method, "body": "" }).to_string();
        workspace.run(&["run", "request", "--args", &arguments]);
    }
    let lines = logged(&workspace, &[]);
    let requests: Vec<_> = lines.iter().map(|line| line["requests"][0].clone()).collect();
    let origin = server.url();
    let refused = |method: &str, kind: &str| json!({ "method": method, "origin": origin, "bytes": [0, 0], "refused": kind });
    let mut allowed = requests[0].clone();
    assert!(allowed["bytes"][1].as_u64().unwrap() > 0, "{allowed}");
    allowed["bytes"] = json!([0, 0]);
    let expected = json!({
        "method": "GET", "origin": origin, "status": 200, "bytes": [0, 0], "rule": grant,
    });
    assert_eq!(allowed, expected);
    assert_eq!(requests[1..], [refused("POST", "method"), refused("GET", "path")]);
    assert!(!fs::read_to_string(file(&workspace)).unwrap().contains("secret=1"));
}

#[test]
fn a_byte_that_was_flipped_a_line_that_was_removed_and_a_cut_tail_are_found() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    for expression in ["1", "2", "3"] {
        calculate(&workspace, expression).success();
    }
    assert_eq!(verify(&workspace)["open"], json!(0));
    let head = workspace.run(&["audit", "head"]).success();
    assert!(head.trim_end().ends_with(" after 3 lines"), "{head}");
    let text = fs::read_to_string(file(&workspace)).unwrap();
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let check = |changed: String, expected: &str| {
        fs::write(file(&workspace), changed).unwrap();
        let run = workspace.run(&["audit", "verify"]);
        assert_eq!(run.code, 6, "{}", run.shown());
        assert!(run.stderr.contains(expected), "{}", run.shown());
    };
    check(text.replacen("success", "succeSs", 1), "line 1 of `");
    check([lines[0], lines[2]].concat(), "the audit log was cut");
    check([lines[0], lines[2], &" ".repeat(lines[1].len())].concat(), "1 lines are missing");
    check([lines[0], lines[1]].concat(), "the audit log was cut");
    fs::write(file(&workspace), &text).unwrap();
    assert_eq!(verify(&workspace)["lines"], json!(3));
}

#[test]
fn where_nothing_can_be_logged_a_call_warns_or_is_refused() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    calculate(&workspace, "1").success();
    fs::write(file(&workspace), "").unwrap();
    let run = calculate(&workspace, "1");
    assert_eq!(run.code, 0, "{}", run.shown());
    let warning = "warning: the call is not in the audit log: the audit log was cut: ";
    assert!(run.stderr.contains(warning), "{}", run.shown());
    workspace.own_config("[audit]\nrequired = true\n");
    let run = calculate(&workspace, "1");
    assert_eq!((run.code, &*run.stdout), (6, ""), "{}", run.shown());
    assert!(run.stderr.contains("`[audit] required` wants it logged"), "{}", run.shown());
    let mut server = Client::stateless(&workspace, json!({}));
    let answer = server.call("calculate", json!({ "expression": "1" }));
    assert!(answer.to_string().contains("`[audit] required` wants it logged"), "{answer}");
    fs::remove_dir_all(directory(&workspace)).unwrap();
    let answer = server.call("calculate", json!({ "expression": "1" }));
    assert!(answer.to_string().contains("\"1\""), "{answer}");
    workspace.own_config("[audit]\nenable = false\n");
    let run = workspace.run(&["audit"]);
    assert!(run.stderr.contains("`[audit] enable` is false"), "{}", run.shown());
}

#[test]
fn servers_and_the_command_line_write_one_log() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    let mut servers = [(); 2]
        .map(|()| Client::start_with(&workspace, &[], Stdio::null()).after_handshake(json!({})));
    for round in 0..20 {
        let arguments = json!({ "name": "calculate", "arguments": { "expression": "1+1" } });
        let ids: Vec<_> =
            servers.iter_mut().map(|it| it.send("tools/call", arguments.clone())).collect();
        if round % 10 == 0 {
            calculate(&workspace, "1").success();
        }
        for (server, id) in servers.iter_mut().zip(ids) {
            server.answer(id);
        }
    }
    // One ends by itself, with all that it has to write; the other is killed.
    let [first, mut second] = servers;
    let (_, _) = first.close();
    second.kill();
    let verified = verify(&workspace);
    assert!(verified["lines"].as_u64().unwrap() >= 22, "{verified}");
    calculate(&workspace, "1").success();
    let verified = verify(&workspace);
    assert_eq!((&verified["open"], &verified["torn"]), (&json!(0), &json!(0)));
    assert_eq!(logged(&workspace, &["--caller", "user"]).len(), 3);
    assert!(logged(&workspace, &["--caller", "client"]).len() >= 20);
}

#[test]
fn a_process_that_is_killed_at_any_moment_leaves_a_log_that_verifies_with_each_answered_call() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    workspace.own_config("[audit]\nsync = \"each\"\n");
    let arguments = json!({ "name": "calculate", "arguments": { "expression": "1+1" } });
    let (mut answered, mut ends) = (0, 0);
    for round in 0..25_u64 {
        let server = Client::start_with(&workspace, &[], Stdio::null());
        let mut server = server.after_handshake(json!({}));
        // The first is waited for, so that the others come one after the other without a start.
        server.call("calculate", json!({ "expression": "1" }));
        answered += 1;
        let size = || fs::metadata(file(&workspace)).unwrap().len();
        let begun = size();
        for _ in 0..40 {
            server.send("tools/call", arguments.clone());
        }
        // Of the forty lines, a dozen at most.
        while size() <= begun + 200 * round {
            std::thread::yield_now();
        }
        server.kill();
        let verified = verify(&workspace);
        let lines = verified["lines"].as_u64().unwrap();
        assert!(lines >= answered, "{answered} calls were answered: {verified}");
        ends += u64::from(lines > answered && lines < answered + 40);
        answered = lines;
    }
    assert!(ends > 0, "no process was killed while it wrote");
}

#[test]
fn no_tool_reads_or_changes_the_log() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    calculate(&workspace, "1").success();
    let (state, probe) = (workspace.home().join(".local"), guest("probe"));
    workspace.own_config(&format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {probe:?}\n[tools.probe.grants]\n\
         filesystem = [{{ host = {state:?}, guest = \"/state\", mode = \"rw\" }}]\n"
    ));
    let before = fs::read(file(&workspace)).unwrap();
    for path in
        ["/state/state/kitbag/audit/head.json", "/state/state/kitbag/audit/audit-000001.jsonl"]
    {
        for arguments in [
            json!({ "do": "read", "path": path }),
            json!({ "do": "write", "path": path, "text": "x" }),
        ] {
            let run = workspace.run(&["run", "probe", "--args", &arguments.to_string()]);
            assert!(run.shown().contains("not-permitted"), "{}", run.shown());
        }
    }
    assert!(fs::read(file(&workspace)).unwrap().starts_with(&before));
    verify(&workspace);
}

#[test]
fn the_log_is_read_whatever_is_wrong_with_a_workspace() {
    let workspace = Workspace::with_toolsets(&["calc"]).untrusted();
    calculate(&workspace, "1+1").success();
    workspace.config("[tools.a]\nwasm = \"https:\n");
    assert!(workspace.run(&["list"]).stderr.contains(".kitbag/config.toml:2:"));
    assert_eq!(logged(&workspace, &[]).len(), 1);
    for command in [&["audit"][..], &["audit", "verify"], &["audit", "head"]] {
        let run = workspace.run(command);
        assert_eq!((run.code, &*run.stderr), (0, ""), "{command:?}: {}", run.shown());
    }
    // Nor does one that is not trusted add to what is read.
    workspace.config("[knowledge.keys]\nsubjects = \"~\"\n");
    assert_ne!(workspace.run(&["list"]).stderr, "");
    assert_eq!(workspace.run(&["audit", "verify"]).stderr, "");
}
