//! Mistakes of a person: each message names the mistake, its location, and the fix.

use serde_json::json;

use crate::support::http::HttpServer;
use crate::support::mcp::Client;
use crate::support::mcp::texts;
use crate::support::{Workspace, crafted, snapshot};

#[test]
fn a_missing_component_names_its_line_and_the_nearest_file() {
    let workspace = Workspace::new();
    workspace.file("built/word_count.wasm", crafted::tool("a:b/c", ""));
    workspace.config(
        "[tools.count]\nsource = \"local\"\nwasm = \"built/word-coumt.wasm\"\n\
         [tools.other]\nsource = \"local\"\nwasm = \"nowhere/other.wasm\"\n",
    );
    snapshot!(
        "missing component",
        &workspace.session(&[
            &["run", "count"],
            &["run", "count", "--json"],
            &["run", "other"],
            &["check"],
        ]),
    );
    // A client gets an answer, and other tools are served.
    let mut client = Client::with_handshake(&workspace, json!({}));
    let answer = client.call("count", json!({}));
    assert_eq!(answer["isError"], true);
    assert!(texts(&answer)[0].contains(".kitbag/config.toml:3:8"), "{answer}");
}

#[test]
fn a_truncated_answer_exits_like_a_limit_without_json() {
    let workspace = Workspace::with_probe("");
    let text = "x".repeat(5_000);
    let echo = ["run", "probe", "do=echo", &format!("text={text}"), "--output", "1KiB"];
    let run = workspace.run(&echo);
    assert_eq!(run.code, 5, "{}", run.shown());
    assert!(
        run.stdout.ends_with("[cut by kitbag: this answer had 5000 bytes]\n"),
        "{}",
        run.stdout
    );
    assert_eq!(
        run.stderr,
        "error: the output was truncated: it had 5000 bytes; the limit `output` is 1 KiB (flag \
         --output)\nhint: allow more with `--output`, which sets it\n"
    );
    let run = workspace.run(&[&echo[..], &["--json"]].concat());
    assert_eq!((run.code, &run.json()["cut"]), (5, &json!({ "bytes": 5000, "limit": "1 KiB" })));
    // Output that fits is printed completely.
    let run = workspace.run(&["run", "probe", "do=echo", "text=x", "--json"]);
    assert_eq!((run.code, run.json().get("cut")), (0, None));

    // A client gets no truncated JSON document.
    let workspace = Workspace::with_toolsets(&["time"]);
    let serve = ["serve", "--output", "10B"];
    let mut client = Client::start(&workspace, &serve[1..]).after_handshake(json!({}));
    let answer = client.call("parse_time", json!({ "time": "2026-01-01" }));
    assert_eq!((&answer["isError"], answer.get("structuredContent")), (&json!(true), None));
    assert!(texts(&answer)[0].contains("(flag --output)"), "{answer}");
}

#[test]
fn a_note_shared_by_many_tools_is_printed_once() {
    let workspace = Workspace::with_toolsets(&["files", "search", "time", "text"]);
    // No workspace was chosen here.
    let mut command = workspace.command();
    let output = command.current_dir(workspace.outside()).arg("list").output().unwrap();
    let list = workspace.redact(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(list.matches("contains your home directory").count(), 1, "{list}");
    snapshot!("list without a workspace", &list);

    let export = |tools: &[&str]| {
        let command = [&["export", "--format", "openai-chat"], tools].concat();
        workspace.run(&command).stderr
    };
    assert_eq!(export(&[]).lines().count(), 1, "{}", export(&[]));
    let warned = export(&["parse_time"]);
    assert!(warned.starts_with("warning: `parse_time`: "), "{warned}");
}

#[test]
fn default_values_of_built_ins_are_shown_on_demand() {
    let workspace = Workspace::with_toolsets(&["files", "time"]);
    workspace.config(
        "[limits]\ntime = \"5s\"\n[tools.now]\ndescription = \"The time\"\n[tools.now.limits]\n\
         memory = \"32MiB\"\n",
    );
    let shown = |arguments: &[&str]| workspace.run(&[&["config", "--show"], arguments].concat());
    let keys = |text: &str| -> Vec<String> {
        let keys = text.lines().filter(|line| line.starts_with("tools."));
        keys.map(|line| line.split(" = ").next().unwrap().to_owned()).collect()
    };
    let run = shown(&[]);
    assert_eq!(keys(&run.stdout), ["tools.now.description", "tools.now.limits.memory"]);
    assert!(run.stderr.contains("`--all`"), "{}", run.stderr);
    let all = shown(&["--all"]);
    assert!(keys(&all.stdout).len() > 50 && all.stderr.is_empty(), "{}", all.shown());
    assert!(keys(&all.stdout).contains(&"tools.now.limits.time".to_owned()));
    assert_eq!(
        shown(&["--all", "--json"]).json().as_array().unwrap().len(),
        all.stdout.lines().count()
    );
}

#[test]
fn a_server_that_cannot_listen_makes_no_token() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let address = format!("127.0.0.1:{}", server.address.port());
    let run = workspace.run(&["serve", "--http", &address]);
    assert_eq!(run.code, 6, "{}", run.shown());
    assert!(!run.stderr.contains("token") && run.stderr.contains(&address), "{}", run.stderr);
}
