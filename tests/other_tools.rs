//! Calls that a tool makes of others, through the binary and the server.

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Run, Workspace, guest};

/// The tools: `relay` calls others as its arguments say, with these grants; `probe` does what
/// it is told; `keep` counts how often it ran.
fn workspace(tools: &str) -> Workspace {
    let workspace = Workspace::new();
    let tool = |name: &str, file: &str, grants: &str| {
        let wasm = guest(file);
        format!(
            "[tools.{name}]\nsource = \"local\"\nwasm = {wasm:?}\n\
             [tools.{name}.grants]\nfilesystem = []\n{grants}\n"
        )
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

const ALL: &str = "{ probe = \"probe\", count = \"keep\" }";

fn relay(workspace: &Workspace, steps: &Value, more: &[&str]) -> Run {
    let arguments = json!({ "steps": steps }).to_string();
    workspace.run(&[&["run", "relay", "--args", &arguments], more].concat())
}

#[track_caller]
fn check(workspace: &Workspace, steps: Value, expected: &[&str]) {
    let said = relay(workspace, &steps, &[]).success();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{steps}");
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "call": { "tool": tool, "arguments": arguments } })
}

fn echo(text: &str) -> Value {
    call("probe", json!({ "do": "echo", "text": text }))
}

/// Counts up, so that the answer says how often it was called.
fn count() -> Value {
    call("count", json!({ "action": "increment", "key": "n" }))
}

fn counted(workspace: &Workspace) -> String {
    let get = json!({ "action": "get", "key": "n" }).to_string();
    workspace.run(&["run", "keep", "--args", &get]).success().trim_end().to_owned()
}

#[test]
fn a_tool_calls_the_tools_that_it_is_granted_by_its_names_for_them() {
    let workspace = workspace(ALL);
    check(&workspace, json!(["list"]), &["count probe"]);
    check(&workspace, json!([echo("a"), count(), count()]), &["ok a", "ok 1", "ok 2"]);
    let failed = call("probe", json!({ "do": "fail", "message": "no" }));
    let said = relay(&workspace, &json!([failed, echo("on")]), &[]).success();
    assert!(said.starts_with("error ") && said.ends_with("ok on\n"), "{said}");
    // By the names of the configuration there is none of them.
    let said = relay(&workspace, &json!([call("keep", json!({ "action": "list" }))]), &[]);
    let said = said.success();
    assert!(said.starts_with("error no grant of `tools` names `keep`; "), "{said}");
}

#[test]
fn without_a_grant_there_are_no_tools() {
    let none = workspace("{}");
    assert_eq!(relay(&none, &json!(["list"]), &[]).success(), "");
    let said = relay(&none, &json!([echo("a")]), &[]).success();
    assert!(said.starts_with("error no grant of `tools` names `probe`; "), "{said}");
}

#[test]
fn arguments_are_checked_as_those_of_any_call() {
    let workspace = workspace(ALL);
    let said = relay(&workspace, &json!([call("count", json!({ "nothing": 1 }))]), &[]).success();
    assert!(said.starts_with("error invalid arguments for `keep`"), "{said}");
}

#[test]
fn a_condition_of_the_grant_holds_for_the_arguments() {
    let workspace = workspace(
        "{ probe = { tool = \"probe\", where = { do = \"echo\", text = [\"docs/**\", \"all\"] } } }",
    );
    check(&workspace, json!([echo("docs/a/b"), echo("all")]), &["ok docs/a/b", "ok all"]);
    for refused in ["secrets", "docs/../secrets", "docs/%2e%2e/secrets"] {
        let said = relay(&workspace, &json!([echo(refused)]), &[]).success();
        assert!(said.starts_with("error `relay` may not make this call of `probe`: "), "{said}");
    }
    let spin = call("probe", json!({ "do": "spin", "text": "all" }));
    let said = relay(&workspace, &json!([spin]), &[]).success();
    assert!(said.contains("may not make this call"), "{said}");
}

#[test]
fn several_run_at_once_and_are_taken_as_they_end() {
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
fn no_more_calls_are_made_than_the_limit() {
    let workspace = workspace(ALL);
    let many = json!([{ "call": {
        "tool": "count", "arguments": { "action": "increment", "key": "n" }, "times": 22
    } }]);
    let said = relay(&workspace, &many, &[]).success();
    let refused: Vec<_> = said.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(refused.len(), 2, "{said}");
    assert!(refused[0].contains("20 calls") && refused[0].contains("`tool_calls`"), "{said}");
    assert_eq!(counted(&workspace), "20");
    // A call may have less.
    let said = relay(&workspace, &many, &["--tool-calls", "1"]).success();
    assert_eq!(said.lines().filter(|line| line.starts_with("ok")).count(), 1, "{said}");
}

#[test]
fn calls_nest_so_deep_and_no_deeper() {
    let workspace = Workspace::new();
    let wasm = guest("relay");
    let tool = |name: &str, inner: &str| {
        format!(
            "[tools.{name}]\nsource = \"local\"\nwasm = {wasm:?}\n\
             [tools.{name}.grants]\ntools = {{ next = \"{inner}\" }}\n"
        )
    };
    workspace.own_config(&[tool("a", "b"), tool("b", "a")].concat());
    let nested = |depth: usize| {
        (1..depth)
            .fold(json!(["list"]), |steps, _| json!([call("next", json!({ "steps": steps }))]))
    };
    let run = |depth: usize| {
        let arguments = json!({ "steps": nested(depth) }).to_string();
        workspace.run(&["run", "a", "--args", &arguments]).success()
    };
    assert_eq!(run(4), "ok ok ok next\n");
    let said = run(5);
    assert!(said.starts_with("ok ok ok error tool b calls no further tool"), "{said}");
}

#[test]
fn an_inner_call_ends_with_the_time_of_the_outer_one() {
    let workspace = workspace(ALL);
    let spin = json!([call("probe", json!({ "do": "spin" })), echo("never")]);
    let run = relay(&workspace, &spin, &["--time", "500ms"]);
    assert_eq!(run.code, 5, "{}", run.shown());
    assert!(run.stderr.contains("`time`") || run.stderr.contains("500"), "{}", run.shown());
    // The next call works.
    check(&workspace, json!([echo("a")]), &["ok a"]);
}

#[test]
fn a_question_of_an_inner_call_is_one_of_the_outer_and_nothing_is_done_twice() {
    let workspace = workspace(ALL);
    let ask = call("probe", json!({ "do": "ask" }));
    let steps = json!(["readings", count(), ask, count(), { "log": { "text": "once" } }]);
    let run = relay(&workspace, &steps, &[]);
    assert_eq!(run.code, 3, "{}", run.shown());
    assert!(run.stderr.contains("probe: Go on?"), "{}", run.shown());
    assert!(run.stderr.contains("--answer 1/probe/go-on="), "{}", run.shown());
    assert_eq!(counted(&workspace), "1");
    let run = relay(&workspace, &steps, &["--answer", "1/probe/go-on=yes"]);
    let said = run.success();
    assert!(said.ends_with("ok 2\nok ask: {\"go-on\":true}\nok 3\n"), "{said}");
    assert_eq!(counted(&workspace), "3");
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
    assert_eq!(asked["message"], "probe: Go on?");
    let asked = client.reply("elicitation/create", accept("own"));
    assert_eq!(asked["message"], "Sure?");
    check_answer(&client.answer(id)["result"], &workspace);
}

#[test]
fn a_stateless_client_goes_on_where_the_call_was() {
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
    // A state goes on once.
    let again = client.request("tools/call", used);
    let message = again["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the call cannot go on"), "{again}");
    assert_eq!(counted(&workspace), "3");
}

#[test]
fn a_client_without_forms_passes_the_answers_of_its_user_on() {
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
fn a_run_that_makes_other_calls_than_before_is_an_error() {
    let workspace = workspace(ALL);
    let steps = json!([{ "diverge": { "tool": "probe" } }, { "ask": { "text": "Sure?" } }]);
    let run = relay(&workspace, &steps, &["--answer", "own=yes"]);
    assert_ne!(run.code, 0, "{}", run.shown());
    assert!(run.stderr.contains("run again with an answer"), "{}", run.shown());
}

#[test]
fn what_is_started_and_dropped_ends_with_the_call() {
    let workspace = workspace(ALL);
    let spin = json!({ "start": { "tool": "probe", "arguments": { "do": "spin" } } });
    let sleep =
        json!({ "start": { "tool": "probe", "arguments": { "do": "sleep", "ms": 600_000 } } });
    check(&workspace, json!([sleep, "drop", echo("a")]), &["ok a"]);
    check(&workspace, json!([echo("a"), spin]), &["ok a"]);
}
