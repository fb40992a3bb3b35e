//! A broken part of the configuration disables only itself.

use std::fs;

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Run, Workspace, guest, probe};

/// Broken files of a workspace, each with the location in the message, and the tools that are
/// disabled if the workspace is trusted.
const CASES: [(&str, &str, &str, &[&str]); 13] = [
    (
        ".kitbag/config.toml",
        "[ceiling]\nmemory = \"1GiB\"\n",
        ":1:2: a workspace may not set `ceiling`",
        &[],
    ),
    (".kitbag/config.toml", "[later]\nx = 1\n", ":1:2: unknown key `later`", &[]),
    (".kitbag/config.toml", "[tools.now]\nlater = 1\n", ":2:1: unknown key `later`", &["now"]),
    (".kitbag/config.toml", "[tools.probe\n", ":1:13: syntax error", &["probe"]),
    (".kitbag/config.toml", "[limits]\ntime = \"soon\"\n", ":2:8: ", &["now", "learn", "probe"]),
    (".kitbag/config.toml", "[knowledge.\"\"]\nsubjects = \".\"\n", ":1:12: ", &[]),
    (".kitbag/tools/a b.wasm", "", ": `a b` is not a tool name", &[]),
    (".kitbag/tools/weather-1.3.wasm", "", ": `weather-1.3` is not a tool name", &[]),
    (
        ".kitbag/tools/ECHO.WASM",
        "",
        ": is ignored: the name of a component must end in `.wasm`",
        &[],
    ),
    (".kitbag/scripts/my-script.v2.py", "", ": `my-script.v2` is not a tool name", &[]),
    (".kitbag/tools/learn.wasm", "", ": local tool `learn` has the name of a built-in", &[]),
    (
        ".kitbag/tools/probe.toml",
        "rate = 3\n",
        ":1:8: `tools.probe.rate` takes a string",
        &["probe"],
    ),
    (".kitbag/kitbag.lock", "version = 9\n", ":1:11: this file has version 9", &["probe"]),
];

/// A workspace with the tool `probe` in `.kitbag/tools`.
fn workspace() -> Workspace {
    let workspace = Workspace::with_toolsets(&["time"]);
    fs::create_dir_all(workspace.path(".kitbag/tools")).unwrap();
    fs::copy(guest("probe"), workspace.path(".kitbag/tools/probe.wasm")).unwrap();
    workspace
}

fn names(client: &mut Client) -> Vec<String> {
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The lines that contain the name of a file.
fn naming<'a>(text: &'a str, file: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(file)).collect()
}

#[track_caller]
fn assert_said_once(run: &Run, file: &str, said: &str) {
    let start = format!("warning: {file}");
    let lines: Vec<_> = run.stderr.lines().filter(|line| line.starts_with(&start)).collect();
    let [line] = &*lines else { panic!("{}", run.shown()) };
    assert!(line.contains(&format!("{file}{said}")), "{}", run.shown());
}

#[test]
fn a_fresh_clone_never_stops_the_built_ins() {
    for (file, text, said, _) in CASES {
        let workspace = workspace().untrusted();
        // Manifests and lock files are not read before.
        let is_unread = file.ends_with("probe.toml") || file.ends_with(".lock");
        workspace.file(file, text);
        for command in [&["run", "now"][..], &["list"], &["prompt"], &["config", "--show"]] {
            let run = workspace.run(command);
            assert_eq!(run.code, 0, "{file}: {}", run.shown());
            if !is_unread && !file.ends_with("learn.wasm") {
                assert_said_once(&run, file, said);
            }
        }
        let mut client = Client::with_handshake(&workspace, json!({}));
        assert!(names(&mut client).contains(&"now".to_owned()), "{file}");
        assert!(client.call("now", json!({}))["isError"] != true, "{file}");
        let (status, stderr) = client.close();
        assert!(status.success(), "{file}: {stderr}");
        if !is_unread && !file.ends_with("learn.wasm") {
            assert_eq!(naming(&stderr, file).len(), 1, "{stderr}");
            // `check` is strict.
            assert_eq!(workspace.run(&["check"]).code, 4, "{file}");
        }
    }
}

#[test]
fn a_broken_piece_of_a_trusted_workspace_is_isolated_and_named() {
    for (file, text, said, off) in CASES {
        let workspace = workspace();
        workspace.file(file, text);
        for (tool, arguments) in [("now", &[][..]), ("probe", &["do=echo", "text=here"])] {
            let run = workspace.run(&[&["run", tool], arguments].concat());
            assert_said_once_or_twice(&run, file, said);
            let code = if off.contains(&tool) { 4 } else { 0 };
            assert_eq!(run.code, code, "{file}: {}", run.shown());
            if code == 4 {
                let error = run.stderr.lines().find(|line| line.starts_with("error: "));
                assert!(error.unwrap().contains(&format!("{file}{said}")), "{}", run.shown());
            }
        }
        let list = workspace.run(&["list", "--json"]);
        assert_said_once(&list, file, said);
        let listed = list.json();
        for tool in ["now", "learn", "probe"] {
            let mut all = listed.as_array().unwrap().iter();
            let listed = all.find(|it| it["name"] == tool).unwrap();
            let reason = listed["disabled"].as_str().unwrap_or_default();
            assert_eq!(reason.contains(said), off.contains(&tool), "{file}: {listed}");
        }
        let check = workspace.run(&["check"]);
        assert_eq!(check.code, 4, "{file}: {}", check.shown());
        assert!(check.stderr.contains(&format!("{file}{said}")), "{}", check.shown());

        let mut client = Client::with_handshake(&workspace, json!({}));
        let served = names(&mut client);
        for tool in ["now", "learn", "probe"] {
            assert_eq!(served.iter().any(|it| it == tool), !off.contains(&tool), "{file}: {tool}");
        }
        if let Some(tool) = off.first() {
            let call = json!({ "name": tool, "arguments": {} });
            let refused = client.request("tools/call", call)["error"]["message"].clone();
            assert!(refused.as_str().unwrap().contains(&format!("{file}{said}")), "{refused}");
        }
        let (_, stderr) = client.close();
        assert_eq!(naming(&stderr, file).len(), 1, "{stderr}");
    }
}

/// There must be a warning, and the error of the call if the tool is disabled.
#[track_caller]
fn assert_said_once_or_twice(run: &Run, file: &str, said: &str) {
    let lines = naming(&run.stderr, file);
    assert!((1..=2).contains(&lines.len()), "{}", run.shown());
    assert!(lines[0].contains(&format!("{file}{said}")), "{}", run.shown());
}

#[test]
fn a_mistake_of_the_user_stops_commands_and_no_server() {
    let workspace = Workspace::with_toolsets(&["time", "calc"]);
    workspace.config(&probe(""));
    workspace.own_config("[tools.now]\naprove = \"always\"\n");
    let place = "<home>/.config/kitbag/config.toml:2:1: unknown key `aprove`";
    for command in [&["list"][..], &["run", "calculate", "expression=1+1"], &["prompt"]] {
        let run = workspace.run(command);
        assert_eq!(run.code, 4, "{}", run.shown());
        assert!(run.stderr.contains(place), "{}", run.shown());
    }
    let shown = workspace.run(&["config", "--show"]);
    assert_eq!(shown.code, 4, "{}", shown.shown());
    assert!(shown.stdout.contains("limits.time = "), "{}", shown.shown());
    assert!(shown.stderr.contains(place), "{}", shown.shown());
    assert!(workspace.run(&["check"]).stderr.contains(place));
    for command in [
        &["config", "--schema"][..],
        &["completions", "bash"],
        &["man"],
        &["--version"],
        &["audit"],
        &["trust", "--list"],
        &["cache"],
    ] {
        let run = workspace.run(command);
        assert_eq!(run.code, 0, "{command:?}: {}", run.shown());
    }
    let mut client = Client::with_handshake(&workspace, json!({}));
    let served = names(&mut client);
    assert!(!served.contains(&"now".to_owned()), "{served:?}");
    for tool in ["calculate", "learn", "probe"] {
        assert!(served.iter().any(|it| it == tool), "{served:?}");
    }
    let refused = client.request("tools/call", json!({ "name": "now", "arguments": {} }));
    let message: &Value = &refused["error"]["message"];
    assert!(
        message.as_str().unwrap().contains("config.toml:2:1: unknown key `aprove`"),
        "{message}"
    );
    let (_, stderr) = client.close();
    assert!(stderr.contains("ERROR") && stderr.contains("config.toml:2:1: "), "{stderr}");
}

#[test]
fn an_unreadable_user_restriction_turns_off_served_tools() {
    let workspace = Workspace::with_toolsets(&["time"]);
    workspace.config(&probe(""));
    workspace.own_config("[approve]\ndefault = \"sometimes\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    assert_eq!(names(&mut client), [""; 0]);
    let refused = client.request("tools/call", json!({ "name": "now", "arguments": {} }));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("settings that may restrict it cannot be read: "), "{message}");
    assert!(message.contains("config.toml:2:11: "), "{message}");
    workspace.own_config("[approve]\ndefault = \"never\"\n");
    client.notification("notifications/tools/list_changed");
    assert!(names(&mut client).contains(&"now".to_owned()));
}

#[test]
fn a_limit_above_the_ceiling_turns_no_tool_off() {
    let workspace = Workspace::with_toolsets(&["time"]);
    for table in ["tools.now.limits", "limits"] {
        workspace.config(&format!("[{table}]\ntime = \"10h\"\nmemory = \"32MiB\"\n"));
        let run = workspace.run(&["run", "now"]);
        assert_eq!(run.code, 0, "{}", run.shown());
        let said = format!(":2:8: `{table}.time` is `10h`, above the ceiling of `30s`");
        assert_said_once(&run, ".kitbag/config.toml", &said);
        assert!(
            run.stderr.contains("(the ceiling applies instead; `kitbag check`"),
            "{}",
            run.shown()
        );
        assert_eq!(workspace.run(&["check"]).code, 4);
    }
}

#[test]
fn a_broken_file_keeps_its_restrictions() {
    // A valid configuration, and broken versions after an edit, a merge or an upgrade.
    let whole =
        "[tools.write_file]\napprove = \"always\"\n[secret_files]\nnames = [\"*.tfvars\"]\n";
    for broken in [
        whole.replace("approve", "aprove"),
        whole.replace("\"always\"", "[]"),
        whole.replace("\"always\"", "\"alwys\""),
        whole.replace("[tools.write_file]", "[tools.write_file"),
        format!("<<<<<<< HEAD\n{whole}"),
        format!("{whole}\0"),
        "[tools.\"write\\u005ffile\"]\napprove = \"always\"\n=\n".to_owned(),
        format!("{whole}[limits]\n[limits]\n"),
    ] {
        let workspace = Workspace::with_toolsets(&["files", "write"]);
        let write = ["run", "write_file", "path=made.txt", "content=x"];
        workspace.config(whole);
        assert_eq!(workspace.run(&write).code, 10, "{broken}");
        workspace.config(&broken);
        let run = workspace.run(&write);
        assert_eq!(run.code, 4, "{broken}: {}", run.shown());
        assert!(!workspace.path("made.txt").exists(), "{broken}");
    }
    for broken in ["[secret_file]\nnames = [\"*.tfvars\"]\n", "secret_files.names = \"*.tfvars\"\n"]
    {
        let workspace = Workspace::with_toolsets(&["files"]);
        workspace.file("prod.tfvars", "password = 1234\n");
        workspace.config(broken);
        let run = workspace.run(&["run", "read_file", "path=prod.tfvars"]);
        assert_eq!(run.code, 4, "{broken}: {}", run.shown());
        assert!(!run.shown().contains("1234"), "{}", run.shown());
    }
}
