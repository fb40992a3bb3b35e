//! The audit log, through the binary and the server.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use kitbag::base::ByteSize;
use kitbag::config::{LimitFlags, Origin, Sourced};
use kitbag::policy::{Grants, ToolGrants};
use kitbag::{Invocation, Kitbag, Places};
use kitbag_test_servers::{Behaviour, Server};
use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Run, Workspace, block_on, guest};

fn directory(workspace: &Workspace) -> PathBuf {
    workspace.home().join(".local/state/kitbag/audit")
}

fn file(workspace: &Workspace) -> PathBuf {
    directory(workspace).join("audit-000001.jsonl")
}

/// The matching lines of the log, as JSON.
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
fn each_call_is_a_line_with_its_caller_and_outcome() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    assert_eq!(workspace.run(&["audit"]).success(), "");
    assert_eq!(workspace.run(&["audit", "verify"]).success(), "nothing is logged yet\n");
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
    for since in ["today", "yesterday", "2000-01-01", "2000-01-01T00:00", "1h 30m"] {
        // Around midnight the calls may be from yesterday.
        let options = ["--since", since];
        assert!(since == "today" || logged(&workspace, &options).len() == 3, "{since}");
    }
    let run = workspace.run(&["audit", "--since", "soon"]);
    assert!(run.code == 2 && run.stderr.contains("`soon` is not a time"), "{}", run.shown());
    let shown = story(&workspace, &["--outcome", "refused"]);
    let refused = "USER: refused: calculate was not called (the arguments do not match)";
    assert_eq!(shown, ["DAY (UTC)  <workspace>", &format!("  TIME  {refused}")]);
}

/// The output of `kitbag audit`, without dates, times and the user ID.
fn story(workspace: &Workspace, options: &[&str]) -> Vec<String> {
    let run = workspace.run(&[&["audit"], options].concat());
    let user = format!("{}: ", kitbag::Caller::this_user());
    let lines = run.success();
    let is_time = |text: &str| text.len() == 5 && text.as_bytes()[2] == b':';
    let told = lines.lines().map(|line| match (line.get(2..7), line.split_once(" (UTC)")) {
        (_, Some((_, rest))) => format!("DAY (UTC){rest}"),
        (Some(time), None) if is_time(time) => {
            format!("  TIME{}", line[7..].replacen(&user, "USER: ", 1))
        }
        _ => line.to_owned(),
    });
    told.collect()
}

/// The lines of refusals: kind, target, reason, cause, and count.
fn refusals(workspace: &Workspace) -> Vec<String> {
    let lines = logged(workspace, &["--outcome", "refused"]);
    let refusals = lines.iter().filter(|line| line["event"] == json!("refusal"));
    let text = |line: &Value| {
        let field = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
        let words = ["kind", "target", "reason", "by"].map(field).join(" ");
        match &line["times"] {
            Value::Null => words,
            times => format!("{words} {times} times"),
        }
    };
    refusals.map(text).collect()
}

/// The lines of calls without their variable fields.
fn calls(workspace: &Workspace) -> Vec<Value> {
    let lines = logged(workspace, &[]);
    lines.into_iter().filter(|line| line["event"] == json!("call")).collect()
}

#[test]
fn a_request_stopped_before_sending_is_logged_as_refused() {
    const LEAK: &str = "glpat-notARealKey1234567890";
    let server = Server::start(Behaviour::Echo);
    let workspace = Workspace::with_toolsets(&[]);
    let (wasm, place) = (guest("request"), format!("{}/**", server.url()));
    workspace.own_config(&format!(
        "[secrets.github]\nvariable = \"OF_THE_HOST\"\nto = [{place:?}]\n\
         [tools.request]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.request.grants]\nhttp = [{{ url = {place:?}, methods = [\"*\"] }}]\n\
         secrets = {{ github = {{}} }}\n"
    ));
    let value = ("OF_THE_HOST", "the value of a secret");
    let check = |arguments: Value, env: &[(&str, &str)], kind: &str, by: &str, why: &str| {
        let arguments = arguments.to_string();
        let run = workspace.run_with(&["run", "request", "--args", &arguments], "", env);
        assert!(run.shown().contains("HttpRequestDenied"), "{}", run.shown());
        let lines = logged(&workspace, &[]);
        let [.., refusal, call] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(call["refusals"], json!(1));
        let request = &call["requests"][0];
        let expected = json!({
            "method": "POST", "origin": server.url(), "bytes": [0, 0], "refused": kind,
        });
        assert_eq!(*request, expected);
        assert_eq!((&refusal["call"], &refusal["tool"]), (&call["id"], &json!("request")));
        let expected = format!("http POST {} {kind} {by}", server.url());
        assert_eq!(refusals(&workspace).last(), Some(&expected));
        let shown = story(&workspace, &[]);
        let by = if by == "-" { String::new() } else { format!(": `{by}`") };
        let origin = server.url();
        let line = format!("         refused: request may not send POST {origin} ({why}{by})");
        assert_eq!(*shown.last().unwrap(), line);
        assert_eq!(shown[shown.len() - 2], "  TIME  USER: request ran");
    };
    let url = server.url();
    let looks = "it contains what looks like a key or a token";
    let sent = |body: &str, header: &str| {
        let headers: &[&str] = if header.is_empty() { &[] } else { &[header] };
        json!({ "method": "POST", "url": url, "body": body, "headers": headers })
    };
    let key = format!("private-token: {LEAK}");
    check(sent("", &key), &[value], "leak", "gitlab-token", looks);
    check(sent(&format!("a body with {LEAK}"), ""), &[value], "leak", "gitlab-token", looks);
    check(sent(value.1, ""), &[value], "secret", "-", "it would reveal a secret");
    check(sent("a", "range: bytes=0-1"), &[value], "header", "-", "a header is not granted");
    let why = "a required secret cannot be read";
    check(sent("a", ""), &[], "unreadable", "github", why);
    assert!(server.seen().requests.is_empty());
    let text = fs::read_to_string(file(&workspace)).unwrap();
    assert!(!text.contains(LEAK) && !text.contains(value.1));
}

#[test]
fn refused_requests_leave_room_for_sent_requests() {
    let server = Server::start(Behaviour::Echo);
    let workspace = Workspace::with_toolsets(&[]);
    let (wasm, place) = (guest("request"), format!("{}/open/**", server.url()));
    workspace.own_config(&format!(
        "[tools.request]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.request.grants]\nhttp = [{place:?}]\n"
    ));
    let url = format!("{}/closed", server.url());
    let arguments = json!({ "url": url, "times": 300 }).to_string();
    workspace.run(&["run", "request", "--args", &arguments]);
    let calls = calls(&workspace);
    let call = &calls[0];
    assert_eq!(call["requests"].as_array().unwrap().len(), 50);
    assert_eq!((&call["more_requests"], &call["refusals"]), (&json!(250), &json!(300)));
    assert_eq!(refusals(&workspace), [format!("http GET {} path - 300 times", server.url())]);
}

/// A workspace with the tool `probe`, which may read one of its directories and write in another.
fn probing() -> Workspace {
    let workspace = Workspace::new();
    let probe = guest("probe");
    let outside = workspace.outside().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("there.txt"), "there").unwrap();
    for path in
        ["docs/.env", "docs/a.txt", "out/b.txt", "out/.git/config", "out/.vscode/tasks.json"]
    {
        workspace.file(path, "text");
    }
    std::os::unix::fs::symlink(&outside, workspace.path("docs/leads-out")).unwrap();
    workspace.own_config(&format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {probe:?}\n[tools.probe.grants]\n\
         filesystem = [{{ host = {:?}, guest = \"/docs\", mode = \"ro\" }}, \
         {{ host = {:?}, guest = \"/out\", mode = \"rw\" }}, \
         {{ host = {outside:?}, guest = \"/outside\", mode = \"ro\" }}]\n",
        workspace.path("docs"),
        workspace.path("out"),
    ));
    workspace
}

fn probe(workspace: &Workspace, arguments: &Value) -> Run {
    workspace.run(&["run", "probe", "--args", &arguments.to_string()])
}

#[test]
fn each_refused_access_to_a_file_is_a_line() {
    let workspace = probing();
    let check = |arguments: Value, expected: &str| {
        let run = probe(&workspace, &arguments);
        assert!(run.shown().contains("refused ("), "{}", run.shown());
        let expected = format!("file {expected} -");
        assert_eq!(refusals(&workspace).last(), Some(&expected), "{arguments}");
    };
    let (docs, out) = (json!("/docs"), json!("/out"));
    let act = |what: &str, preopen: &Value, path: &str| json!({ "do": what, "preopen": preopen, "path": path, "text": "x" });
    check(act("read", &docs, ".env"), "docs/.env secret");
    check(act("stat", &docs, "../out/b.txt"), "docs/../out/b.txt outside");
    check(act("read", &docs, "leads-out/there.txt"), "docs/leads-out/there.txt outside");
    check(act("read", &docs, "/etc/passwd"), "/etc/passwd outside");
    check(act("write", &docs, "a.txt"), "docs/a.txt read-only");
    check(act("mkdir", &docs, "new"), "docs/new read-only");
    check(act("write", &out, ".vscode/tasks.json"), "out/.vscode/tasks.json protected");
    check(act("write", &out, ".git/hooks"), "out/.git/hooks guarded");
    check(act("remove", &out, ".git/hooks"), "out/.git/hooks guarded");
    check(act("remove", &out, ".git/config"), "out/.git/config secret");
    let link = json!({ "do": "symlink", "target": "/etc", "preopen": "/out", "path": "l" });
    check(link, "out/l outside");
    let outside = workspace.outside().join("outside/new.txt").canonicalize();
    assert!(outside.is_err(), "nothing was written");
    check(act("write", &json!("/outside"), "new.txt"), "<outside>/outside/new.txt read-only");
    probe(&workspace, &act("stat", &docs, "a.txt"));
    assert_eq!(calls(&workspace).last().unwrap()["paths"], json!({ "looked_at": ["docs/a.txt"] }));
    let shown = story(&workspace, &["--outcome", "refused"]);
    let line = "  TIME  USER: refused: probe may not use `docs/.env` (it looks like a secret)";
    assert_eq!(shown[1], line);
}

#[test]
fn a_call_lists_its_inner_calls_and_refusals() {
    let workspace = Workspace::with_toolsets(&["calc", "python"]);
    let (relay, probe) = (guest("relay"), guest("probe"));
    let tools = |grants: &str| {
        workspace.own_config(&format!(
            "[tools.relay]\nsource = \"local\"\nwasm = {relay:?}\n\
             [tools.relay.grants]\nfilesystem = []\n{grants}\n\
             [tools.probe]\nsource = \"local\"\nwasm = {probe:?}\n\
             [tools.off]\nsource = \"local\"\nwasm = {probe:?}\nenable = false\n"
        ));
    };
    let relay = |tools: &[&str]| {
        let step = |tool: &&str| {
            let arguments = json!({ "do": "echo", "text": "x" });
            json!({ "call": { "tool": tool, "arguments": arguments } })
        };
        let steps: Vec<_> = tools.iter().map(step).collect();
        workspace.run(&["run", "relay", "--args", &json!({ "steps": steps }).to_string()]);
        let lines = logged(&workspace, &[]);
        lines.last().unwrap().clone()
    };
    tools("");
    relay(&["probe"]);
    assert_eq!(refusals(&workspace), ["tool probe grant -"], "without any grant");
    tools("tools = { p = \"probe\", off = \"off\" }");
    let call = relay(&["p", "p", "probe", "no\u{202e}ne", "off"]);
    assert_eq!(call["aliases"], json!(["p", "off"]));
    assert_eq!(call["refusals"], json!(2));
    let of_call = &refusals(&workspace)[1..];
    assert_eq!(of_call, ["tool probe grant -", "tool no\\u{202e}ne grant -"]);
    let shown = story(&workspace, &[]);
    let inside = &shown[shown.len() - 6..];
    let expected = [
        "  TIME  USER: relay ran",
        "         probe ran",
        "         probe ran",
        "         refused: off was not called (it is disabled)",
        "         refused: relay may not call `probe` (not granted)",
        "         refused: relay may not call `no\\u{202e}ne` (not granted)",
    ];
    assert_eq!(inside, expected);
    // A large number of names is only counted.
    let many: Vec<_> = (0..80).map(|number| format!("none{number}")).collect();
    let call = relay(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((&call["refusals"], &call["more_refusals"]), (&json!(80), &json!(30)));
    // A script that looks up a tool which it may not call is refused.
    let own = fs::read_to_string(workspace.own_config_file()).unwrap();
    fs::write(
        workspace.own_config_file(),
        format!("[tools.python.grants]\ntools = {{ probe = \"probe\" }}\n{own}"),
    )
    .unwrap();
    workspace.run(&["run", "python", "code=calculate(expression='1')"]);
    assert_eq!(refusals(&workspace).last().unwrap(), "tool calculate grant -");
    let line = "         refused: python may not call `calculate` (not granted)";
    assert_eq!(story(&workspace, &[]).last().unwrap(), line);
    workspace.run(&["run", "python", "code=calcula(expression='1')"]);
    let lines = logged(&workspace, &[]);
    assert_eq!(lines.last().unwrap()["refusals"], Value::Null, "there is no such tool");
}

#[test]
fn a_call_cannot_exceed_the_grants_and_limits_of_its_tool() {
    let workspace = Workspace::with_probe("");
    let state = workspace.home().join(".local/state/kitbag");
    let places = Places {
        cache: Some(workspace.cache().to_owned()),
        user_file: Some(workspace.own_config_file()),
        state: Some(Sourced { value: state, origin: Origin::Default }),
        ..Places::default()
    };
    let kitbag = Kitbag::builder().workspace(workspace.root()).places(places);
    let kitbag = kitbag.trust_workspace(true).build().unwrap();
    let echo = || Invocation::tool("probe", json!({ "do": "echo", "text": "x" }));
    let limits = LimitFlags { memory: Some(ByteSize::mib(65)), ..LimitFlags::default() };
    block_on(kitbag.invoke(echo().with_limits(limits))).unwrap_err();
    let grants = Grants { tools: ToolGrants::Caller, ..Grants::default() };
    block_on(kitbag.invoke(echo().with_grants(grants))).unwrap_err();
    drop(kitbag);
    let reasons: Vec<_> = logged(&workspace, &["--outcome", "refused"])
        .iter()
        .map(|it| it["reason"].clone())
        .collect();
    assert_eq!(reasons, ["limit", "grant"]);
}

#[test]
fn a_client_is_logged_under_its_own_name() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    let mut server = Client::start_with(&workspace, &[], Stdio::null());
    let name = format!("claude\u{1b}[2J-code{}", "x".repeat(500));
    let params = json!({
        "protocolVersion": "2025-11-25",
        "clientInfo": { "name": name, "version": "1.2\n" },
        "capabilities": {},
    });
    server.request("initialize", params);
    server.notify("notifications/initialized", json!({}));
    server.call("calculate", json!({ "expression": "1" }));
    drop(server.close());
    let mut server = Client::stateless(&workspace, json!({}));
    server.call("calculate", json!({ "expression": "1" }));
    drop(server.close());
    let lines = logged(&workspace, &["--caller", "claude"]);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let name = format!("claude\\u{{1b}}[2J-code{}…", "x".repeat(49));
    assert_eq!(line["client"], json!({ "name": name, "version": "1.2\\n" }));
    assert_eq!(line["caller"], json!("client stdio"));
    let lines = logged(&workspace, &[]);
    assert_eq!(lines[1]["client"], json!({ "name": "test", "version": "1" }));
    let shown = story(&workspace, &[]);
    assert_eq!(shown.last().unwrap(), "  TIME  client \"test 1\": calculate ran");
    calculate(&workspace, "1").success();
    assert_eq!(logged(&workspace, &[]).last().unwrap()["client"], Value::Null);
}

#[test]
fn each_request_is_logged_with_its_grant_or_refusal() {
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
    let lines = calls(&workspace);
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
fn flipped_bytes_missing_lines_and_cut_tails_are_found() {
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
    check([lines[0], lines[2]].concat(), "1 line is missing before line 2 of `");
    check([lines[0], lines[2], &" ".repeat(lines[1].len())].concat(), "1 line is missing");
    check([lines[0], lines[1]].concat(), "the audit log was truncated after line 2: `");
    check(
        format!("{}{}", lines[0], &lines[1][..20]),
        "the audit log was truncated after line 2: `",
    );
    check(format!("{text}garbage\n"), "line 4 of `");
    check(format!("{text}\n"), "line 4 of `");
    fs::remove_file(file(&workspace)).unwrap();
    let run = workspace.run(&["audit", "verify"]);
    assert_eq!(run.code, 6, "{}", run.shown());
    assert!(run.stderr.contains("is missing, with 3 lines"), "{}", run.shown());
    std::os::unix::fs::symlink(workspace.own_config_file(), file(&workspace)).unwrap();
    let run = workspace.run(&["audit", "verify"]);
    assert_eq!(run.code, 6, "{}", run.shown());
    assert!(run.stderr.contains("symbolic links"), "{}", run.shown());
    fs::remove_file(file(&workspace)).unwrap();
    fs::write(file(&workspace), &text).unwrap();
    assert_eq!(verify(&workspace)["lines"], json!(3));
}

#[test]
fn an_unwritable_log_warns_or_refuses_calls() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    calculate(&workspace, "1").success();
    fs::write(file(&workspace), "").unwrap();
    let run = calculate(&workspace, "1");
    assert_eq!(run.code, 0, "{}", run.shown());
    let warning = "warning: the call is not in the audit log: the audit log was truncated: ";
    assert!(run.stderr.contains(warning), "{}", run.shown());
    workspace.own_config("[audit]\nrequired = true\n");
    let run = calculate(&workspace, "1");
    assert_eq!((run.code, &*run.stdout), (6, ""), "{}", run.shown());
    assert!(run.stderr.contains("because `[audit] required` is set"), "{}", run.shown());
    let mut server = Client::stateless(&workspace, json!({}));
    let answer = server.call("calculate", json!({ "expression": "1" }));
    assert!(answer.to_string().contains("because `[audit] required` is set"), "{answer}");
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
    // One server ends normally, after writing all of its lines; the other is killed.
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
fn sessions_that_end_at_once_lose_no_line() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    let request = |id: u32, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let initialize = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let call = json!({ "name": "calculate", "arguments": { "expression": "1+1" } });
    let stdin = [request(1, "initialize", initialize), request(2, "tools/call", call)].join("\n");
    for sessions in 1..=5 {
        let answers = workspace.run_with(&["serve"], &format!("{stdin}\n"), &[]).success();
        assert_eq!(answers.lines().count(), 2, "{answers}");
        assert_eq!(logged(&workspace, &["--caller", "client"]).len(), sessions);
    }
}

#[test]
fn a_kill_leaves_a_valid_log_with_every_answered_call() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    workspace.own_config("[audit]\nsync = \"each\"\n");
    let arguments = json!({ "name": "calculate", "arguments": { "expression": "1+1" } });
    let (mut answered, mut ends) = (0, 0);
    for round in 0..12_u64 {
        let server = Client::start_with(&workspace, &[], Stdio::null());
        let mut server = server.after_handshake(json!({}));
        // Wait for the first call, so that the others follow without a start.
        server.call("calculate", json!({ "expression": "1" }));
        answered += 1;
        let size = || fs::metadata(file(&workspace)).unwrap().len();
        let begun = size();
        for _ in 0..40 {
            server.send("tools/call", arguments.clone());
        }
        // A dozen of the forty lines at most.
        while size() <= begun + 400 * round {
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
