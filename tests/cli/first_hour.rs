//! Mistakes of the first hour, and the command that was meant.

use std::fs;
use std::process::Command;

use crate::support::Workspace;

#[test]
fn a_mistake_gets_the_command_that_was_meant() {
    let workspace = Workspace::with_toolsets(&["search", "files"]);
    for (typed, meant) in [
        (&["run", "search_files", "--pattern", "x"][..], "kitbag run search_files pattern=x"),
        (&["read_file", "a.txt"], "kitbag run read_file a.txt"),
        (&["install", "./x.wasm"], "kitbag add ./x.wasm"),
        (&["test"], "kitbag check"),
        (&["tools", "list"], "kitbag list"),
        (&["tools"], "kitbag list"),
        (&["version"], "kitbag --version"),
        (&["config", "show"], "kitbag config --show"),
    ] {
        let run = workspace.run(typed);
        assert_eq!(run.code, 2, "{}", run.shown());
        let last = run.stderr.trim_end().lines().last().unwrap_or_default();
        assert_eq!(last, format!("did you mean `{meant}`?"), "{}", run.shown());
        let run = workspace.run(&[typed, &["--json"]].concat());
        assert!(run.stdout.contains(&format!("did you mean `{meant}")), "{}", run.shown());
    }
}

#[test]
fn a_prompt_is_answered_with_the_commands_that_exist() {
    let run = Workspace::new().run(&["-p", "hello"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(run.stderr.contains("kitbag does not run a model: `kitbag serve`"), "{}", run.stderr);
}

#[test]
fn the_only_required_text_is_given_by_position() {
    let workspace = Workspace::with_toolsets(&["search", "files", "calc", "time"]);
    workspace.file("a.txt", "one\ntwo=2\n");
    let run = |arguments: &[&str]| workspace.run(&[&["run"], arguments].concat());
    assert_eq!(run(&["search_files", "tw."]).success(), "a.txt\n2:two=2\n");
    assert_eq!(run(&["search_files", "=2", "path=a.txt"]).success(), "a.txt\n2:two=2\n");
    assert!(run(&["calculate", "1+1"]).success().contains("\"2\""));
    assert!(run(&["read_file", "a.txt", "end_line=1"]).success().contains("one"));
    // Twice, or where no text is required.
    for (arguments, expected) in [
        (&["read_file", "a.txt", "b.txt"][..], "`b.txt` has no key"),
        (&["read_file", "a.txt", "path=a.txt"], "`a.txt` has no key"),
        (&["convert_time", "9:00"], "the arguments of `convert_time` are `"),
    ] {
        let run = run(arguments);
        assert_eq!(run.code, 2, "{}", run.shown());
        assert!(run.stderr.contains(expected), "{}", run.shown());
        assert!(run.stderr.contains("KEY=VALUE"), "{}", run.shown());
    }
}

#[test]
fn a_list_shows_one_toolset_or_tool() {
    let workspace = Workspace::with_toolsets(&["time", "calc"]);
    let list = workspace.run(&["list", "calc"]).success();
    assert!(list.starts_with("calc\n  calculate"), "{list}");
    assert_eq!(list.lines().count(), 2, "{list}");
    let list = workspace.run(&["list", "now", "calc"]).success();
    assert!(list.contains("  now") && !list.contains("parse_time"), "{list}");
    let run = workspace.run(&["list", "calculat"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    let expected = "no tool and no toolset is called `calculat`; did you mean `calculate`?";
    assert!(run.stderr.contains(expected), "{}", run.shown());
}

#[test]
fn a_description_ends_with_a_command_that_works() {
    let toolsets =
        ["files", "search", "data", "text", "time", "calc", "python", "memory", "write", "learn"];
    let workspace = Workspace::with_toolsets(&toolsets);
    // These need what a workspace has: a topic, a memory, an image; and a person who consents.
    let others = ["learn", "forget", "read_media", "remove_path"];
    let tools = workspace.run(&["list", "--json"]).json();
    let tools = tools.as_array().unwrap().iter().filter(|tool| tool["disabled"].is_null());
    let mut count = 0;
    for tool in tools.map(|tool| tool["name"].as_str().unwrap()) {
        let description = workspace.run(&["describe", tool]).success();
        let (_, command) = description.rsplit_once("\nCall it\n  kitbag ").unwrap();
        assert!(command.starts_with(&format!("run {tool}")), "{command}");
        if others.contains(&tool) {
            continue;
        }
        workspace.file("notes.txt", "hello\n");
        if tool == "write_file" {
            fs::remove_file(workspace.path("notes.txt")).unwrap();
        }
        let script = format!("exec \"$KITBAG\" {command}");
        let mut shell = workspace.command();
        let program = shell.get_program().to_owned();
        let variables: Vec<_> = shell
            .get_envs()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
            .collect();
        shell = Command::new("sh");
        let shell = shell.args(["-c", &script]).env_clear().envs(variables);
        let output = shell.env("KITBAG", program).current_dir(workspace.path("")).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        count += 1;
    }
    assert!(count > 25, "{count}");
    let description = workspace.run(&["describe", "now"]).success();
    assert!(description.ends_with("\nCall it\n  kitbag run now\n"), "{description}");
}

#[test]
fn a_source_that_is_no_file_gets_directions() {
    let workspace = Workspace::new();
    for (source, expected) in [
        (
            "oci://ghcr.io/a/tool:1.0",
            "`wkg oci pull ghcr.io/a/tool:1.0 -o tool.wasm`, then `kitbag add ./tool.wasm`",
        ),
        (
            "https://example.com/x/echo.wasm?raw=1",
            "--output echo.wasm 'https://example.com/x/echo.wasm?raw=1'`, then `kitbag add ./echo.wasm`",
        ),
        (
            "ghcr.io/a/tool:1.0",
            "`wkg oci pull ghcr.io/a/tool:1.0 -o tool.wasm`, then `kitbag add ./tool.wasm`",
        ),
        (
            "localhost:5000/a/tool@sha256:00",
            "`wkg oci pull localhost:5000/a/tool@sha256:00 -o tool.wasm`",
        ),
        ("a:tool@1.0.0", "`wkg get a:tool@1.0.0 -o tool.wasm`, then `kitbag add ./tool.wasm`"),
        ("docker://mcp/time", "an image of a container"),
        ("pip:mcp-server-time", "a package whose program has all of your rights"),
        (
            "@modelcontextprotocol/server-filesystem",
            "a package whose program has all of your rights",
        ),
        ("npx", "a package whose program has all of your rights"),
        ("github.com/a/b", "clone it"),
        ("https://example.com/$(reboot)", "'https://example.com/$(reboot)'"),
    ] {
        let run = workspace.run(&["add", source]);
        assert_eq!(run.code, 2, "{}", run.shown());
        assert!(run.stderr.contains(expected), "{}", run.shown());
        assert!(!run.stderr.contains("os error"), "{}", run.shown());
    }
    // A file of the name is a file.
    assert!(workspace.run(&["add", "./absent"]).stderr.contains("No such file"));
}
