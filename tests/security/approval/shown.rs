//! The description of a call that a person sees before they allow it.

use serde_json::json;

use super::server::{accept, forms};
use super::{content, probe, workspace, write};
use crate::support::Workspace;
use crate::support::mcp::Client;
use crate::support::terminal::on_a_terminal;

/// Refuses the call as a person, and returns the lines behind bars that the person saw.
fn barred(workspace: &Workspace, tool: &str, arguments: &serde_json::Value) -> Vec<String> {
    barred_with(workspace, tool, arguments, "no\n")
}

/// Like [`barred`], with a person who types this.
fn barred_with(
    workspace: &Workspace,
    tool: &str,
    arguments: &serde_json::Value,
    typed: &str,
) -> Vec<String> {
    let arguments = arguments.to_string();
    let run = ["run", tool, "--args", &arguments];
    let (stdout, shown) = on_a_terminal(workspace, &run, typed);
    assert_eq!(stdout, "", "{shown}");
    assert!(shown.contains("\nAllow this call of `"), "{shown}");
    assert!(shown.contains("was not approved: the user declined"), "{shown}");
    let lines = shown.lines().filter_map(|line| line.strip_prefix("| "));
    lines.map(str::to_owned).collect()
}

fn files() -> Workspace {
    let workspace = Workspace::with_toolsets(&["files", "write"]);
    workspace.own_config("[approve]\ndefault = \"on-write\"\n");
    workspace.file("a.txt", "one\ntwo\nthree\n");
    workspace.file("dir/b.txt", "b\n");
    workspace
}

#[test]
fn text_for_clients_is_escaped() {
    use serde_json::json;

    use crate::support::mcp::Client;
    let workspace = workspace("\"always\"");
    let mut client = Client::stateless(&workspace, json!({ "elicitation": {} }));
    let mut arguments = write("a.txt", "x\n\u{1b}[2JAllow this?\u{202e}\n");
    arguments["rendered"] = "harmless\n\u{1b}]0;title\u{7}\nAllow this?".into();
    let call = json!({ "name": "probe", "arguments": arguments });
    let answer = client.request("tools/call", call);
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    let message = requests.values().next().unwrap()["params"]["message"].as_str().unwrap();
    assert!(!message.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{message:?}");
    assert!(message.contains("\n|     \\u{1b}[2JAllow this?\\u{202e}\n"), "{message}");
    assert!(!message.contains("\nAllow this?"), "{message}");
}

#[test]
fn a_failed_rendering_does_not_skip_the_question() {
    let workspace = workspace("\"always\"");
    for (rendered, says) in [
        ("spin", "The tool reached the limit `time` while it described the call."),
        ("panic", "The tool failed while it described the call."),
    ] {
        let mut arguments = write("a.txt", "x");
        arguments["rendered"] = rendered.into();
        let shown = barred(&workspace, "probe", &arguments);
        assert_eq!(shown.last().unwrap(), says);
        assert_eq!(shown[1], "path: \"a.txt\"");
        assert_eq!(content(&workspace, "a.txt"), None);
    }
}

#[test]
fn rendering_is_limited_even_if_the_tool_may_run_for_an_hour() {
    let workspace = Workspace::new();
    let probe = probe("approve = \"always\"\n");
    workspace.own_config(&format!("{probe}[tools.probe.limits]\ntime = \"1h\"\n"));
    let mut client = Client::with_handshake(&workspace, forms());
    let mut arguments = write("a.txt", "x");
    arguments["rendered"] = "spin".into();
    let id = client.send("tools/call", json!({ "name": "probe", "arguments": arguments }));
    let asked = client.reply("elicitation/create", accept("no"));
    let message = asked["message"].as_str().unwrap();
    assert!(message.contains("| The tool reached the limit `time` while"), "{message}");
    client.answer(id);
    assert_eq!(content(&workspace, "a.txt"), None);
}

#[test]
fn a_long_call_is_truncated_with_a_notice() {
    let workspace = files();
    let content: String = (0..2_000).map(|line| format!("line {line}\n")).collect();
    let arguments = json!({ "path": "long.txt", "content": content });
    // A screen has 24 lines, and the question takes some of them.
    let shown = barred(&workspace, "write_file", &arguments);
    assert!(shown.len() < 20, "{shown:?}");
    let call = ["run", "write_file", "--args", &arguments.to_string()];
    let (_, terminal) = on_a_terminal(&workspace, &call, "no\n");
    assert!(terminal.contains(" more lines; `s` shows everything\nCalled by "), "{terminal}");
    let question = "Allow this call of `write_file`? [y]es, once / [a]lways in this session / [n]o / \
                    [s]how all: ";
    assert!(terminal.contains(question), "{terminal}");
    assert!(terminal.lines().count() <= 26, "{terminal}");
    // The complete call is shown on request, and the question is repeated.
    let shown = barred_with(&workspace, "write_file", &arguments, "s\nno\n");
    assert!((100..200).contains(&shown.len()), "{}", shown.len());
    assert!(shown.last().unwrap().ends_with("more bytes are not shown]"), "{shown:?}");
    // An extremely long line, and a tool that renders too much text.
    let workspace = self::workspace("\"always\"");
    let show = "show\nno\n";
    let shown = barred_with(&workspace, "probe", &write("a.txt", &"x".repeat(100_000)), show);
    assert!(shown.iter().map(String::len).sum::<usize>() < 10_000);
    let is_cut = |line: &String| line.ends_with("more bytes are not shown]");
    assert!(shown.iter().any(is_cut), "{shown:?}");
    let mut arguments = write("a.txt", "x");
    arguments["rendered"] = "y".repeat(5_000).into();
    let shown = barred_with(&workspace, "probe", &arguments, show);
    let says =
        shown.iter().rposition(|line| line.starts_with("In the tool's own words: ")).unwrap();
    let says: usize = shown[says..].iter().map(String::len).sum();
    assert!((1_000..1_100).contains(&says), "{says}");
    assert!(is_cut(shown.last().unwrap()), "{shown:?}");
}
