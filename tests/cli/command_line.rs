//! The command line: help, completions, configuration, checks. Data on
//! standard output, everything else on standard error.

mod mistakes;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::terminal::Terminal;
use crate::support::{Workspace, guest, repository, snapshot};

#[test]
fn the_help_of_every_command_is_reviewed() {
    let workspace = Workspace::new();
    for command in [
        "",
        "run",
        "script",
        "list",
        "describe",
        "why",
        "add",
        "update",
        "remove",
        "eject",
        "inspect",
        "check",
        "prompt",
        "export",
        "mcp-config",
        "config",
        "cache",
        "completions",
        "man",
    ] {
        let mut arguments = vec!["--help"];
        if !command.is_empty() {
            arguments.insert(0, command);
        }
        let name = if command.is_empty() { "kitbag" } else { command };
        snapshot!(&format!("help: {name}"), &workspace.run(&arguments).success());
    }
}

#[test]
fn every_shell_has_completions() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = workspace.run(&["completions", shell]).success();
        assert!(script.contains("completions"), "{shell}");
    }
}

#[test]
fn every_command_has_a_man_page() {
    let workspace = Workspace::new();
    let help = workspace.run(&["--help"]).success();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let main = workspace.run(&["man"]).success();
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let command = line.split_whitespace().next().unwrap();
        if command != "help" {
            let page = workspace.run(&["man", command]).success();
            assert!(page.contains(&format!(".TH kitbag-{command} 1 ")), "{page}");
            let name = format!("\nkitbag\\-{}(1)\n", command.replace('-', "\\-"));
            assert!(main.contains(&name), "{name}: {main}");
        }
    }
    snapshot!("man: kitbag", &main);
    snapshot!("man: run", &workspace.run(&["man", "run"]).success());
}

#[test]
fn a_terminal_shows_man_pages_as_plain_text() {
    let workspace = Workspace::new();
    let viewers = workspace.path("bin");
    let shown = |path: &Path| {
        let mut command = workspace.command();
        command.env("PATH", path).env("PAGER", "cat").args(["man", "list"]);
        let run = Terminal::with_output(command).end();
        assert_eq!(run.code, 0, "{}", run.shown());
        run.stderr
    };
    // Without a viewer, the help is printed.
    let page = shown(&viewers);
    assert!(page.contains("Usage: kitbag list"), "{page}");
    assert!(!page.contains(".TH") && !page.contains("\\fB"), "{page}");
    // A viewer that rejects the option, then one that accepts it.
    for (script, expected) in [
        ("echo wrong >&2; exit 1", "Usage: kitbag list"),
        ("read -r line; read -r line; echo \"$* $line\"", "-l - "),
    ] {
        let viewer = workspace.file("bin/man", format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&viewer, Permissions::from_mode(0o755)).unwrap();
        let page = shown(&viewers);
        assert!(page.contains(expected) && !page.contains("wrong"), "{page}");
    }
}

#[test]
fn the_schema_of_the_configuration_is_checked_in_and_current() {
    let schema = Workspace::new().run(&["config", "--schema"]).success();
    let checked_in = fs::read_to_string(repository().join("docs/config.schema.json")).unwrap();
    assert!(
        schema == checked_in,
        "run `cargo run -- config --schema > docs/config.schema.json` and review the change",
    );
}

/// A configuration that uses every key.
fn full() -> Workspace {
    let workspace = Workspace::new();
    workspace.file("notes/a.md", "A");
    workspace.config(&format!(
        r#"
[limits]
time = "10s"

[tools.learn.limits]
output = "512KiB"

[tools.notes]
source = "builtin"
builtin = "learn"
title = "Notes"

[tools.probe]
source = "local"
wasm = {:?}
description = "tries things"
enable = true

[tools.probe.parameters.do]
type = "string"
description = "what to try"
required = true
enum = ["echo", "read"]
default = "echo"

[tools.probe.parameters.list]
type = "array"
items = {{ type = "integer" }}

[tools.probe.parameters.options]
type = "object"
properties = {{ depth = {{ type = "integer", default = 1 }} }}

[tools.probe.grants]
filesystem = [{{ host = "notes", guest = "/notes", mode = "rw" }}]

[tools.probe.limits]
memory = "32MiB"

[tools.probe.answers]
overwrite = true

[knowledge.team]
subjects = "notes"
title = "The team's rules"
introduction = "Read these first."
learned = ["a"]
disabled = ["secret"]
"#,
        guest("probe"),
    ));
    workspace
}

#[test]
fn the_workspace_is_found_in_a_parent_or_given() {
    let workspace = full();
    fs::create_dir_all(workspace.path("deep/er")).unwrap();
    let mut command = workspace.command();
    let below = command.current_dir(workspace.path("deep/er")).arg("list").output().unwrap();
    assert!(String::from_utf8_lossy(&below.stdout).contains("probe"));
    let root = workspace.root();
    let mut command = workspace.command();
    let named = command.current_dir("/").args(["list", "-w"]).arg(&root).output().unwrap();
    assert_eq!(named.stdout, below.stdout);
    let mut command = workspace.command();
    let by_variable =
        command.current_dir("/").env("KITBAG_WORKSPACE", &root).arg("list").output().unwrap();
    assert_eq!(by_variable.stdout, below.stdout);
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let workspace = Workspace::with_probe("");
    let mut command = workspace.command();
    command.args(["run", "probe", "do=output", "bytes:=1000000"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_check_loads_every_tool_and_reports_every_problem() {
    let good = full();
    assert_eq!(good.run(&["check"]).success(), "3 tools, 1 topic: 0 errors, 1 warning\n");
    let bad = Workspace::new();
    bad.file("core.wasm", crate::support::crafted::core_module());
    bad.config(
        "[tools.missing]\nsource = \"local\"\nwasm = \"missing.wasm\"\n\
         [tools.core]\nsource = \"local\"\nwasm = \"core.wasm\"\n\
         [knowledge.gone]\nsubjects = \"gone\"\n",
    );
    snapshot!("check: problems", &bad.run(&["check"]).shown());
    snapshot!("check: problems as JSON", &bad.run(&["check", "--json"]).shown());
}
