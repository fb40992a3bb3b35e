//! The command line: help, completions, configuration, checks. Data on
//! standard output, everything else on standard error.

mod mistakes;

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

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
fn wrong_usage_says_what_would_be_right() {
    let workspace = Workspace::new();
    let mut text = String::new();
    for arguments in [
        &["rnu"][..],
        &["run"],
        &["config"],
        &["run", "learn", "--tiem", "1s"],
        &["run", "learn", "--time", "soon"],
        &["run", "learn", "--memory", "lots"],
        &["run", "learn", "topic", "subject"],
        &["man", "rnu"],
    ] {
        let run = workspace.run(arguments);
        assert_eq!(run.code, 2);
        text.push_str(&format!("$ kitbag {}\n{}\n", arguments.join(" "), run.shown()));
    }
    snapshot!("wrong usage", &text);
}

#[test]
fn wrong_usage_is_json_where_a_program_asked_for_it() {
    let workspace = Workspace::new();
    let mut text = String::new();
    for arguments in [
        &["run", "learn", "--json", "--tiem", "1s"][..],
        &["run", "--json"],
        &["--json"],
        &["--json", "rnu"],
        &["run", "learn", "--memory", "lots", "--json"],
        &["run", "learn", "topic", "subject", "--json"],
    ] {
        let run = workspace.run(arguments);
        assert_eq!(run.code, 2, "{}", run.shown());
        assert_eq!(run.json()["outcome"], "failed");
        assert_eq!(run.json()["kind"], "usage");
        text.push_str(&format!("$ kitbag {}\n{}\n", arguments.join(" "), run.shown()));
    }
    snapshot!("wrong usage as JSON", &text);
}

#[test]
fn completions_are_there_for_every_shell() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = workspace.run(&["completions", shell]).success();
        assert!(script.contains("completions"), "{shell}");
    }
}

#[test]
fn every_command_has_its_page_of_the_manual() {
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
fn a_terminal_shows_a_page_of_the_manual_in_plain_text() {
    let workspace = Workspace::new();
    let viewers = workspace.path("bin");
    let shown = |path: &Path| {
        let mut command = workspace.command();
        command.env("PATH", path).env("PAGER", "cat").args(["man", "list"]);
        on_a_terminal(command)
    };
    // No viewer: the help.
    let page = shown(&viewers);
    assert!(page.contains("Usage: kitbag list"), "{page}");
    assert!(!page.contains(".TH") && !page.contains("\\fB"), "{page}");
    // A viewer that does not know the option, then one that does.
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

/// What a command writes to a terminal.
fn on_a_terminal(mut command: Command) -> String {
    let size = nix::pty::Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = nix::pty::openpty(&size, None).unwrap();
    let slave = || pty.slave.try_clone().unwrap();
    let mut child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
    drop((pty.slave, command));
    let mut seen = Vec::new();
    // Linux ends a terminal that is no longer open with an error.
    let _ = File::from(pty.master).read_to_end(&mut seen);
    assert!(child.wait().unwrap().success());
    String::from_utf8_lossy(&seen).into_owned()
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
fn every_value_in_effect_is_shown_with_where_it_came_from() {
    let workspace = full();
    workspace
        .own_config("[limits]\nmemory = \"128MiB\"\n[knowledge.mine]\nsubjects = \"~/notes\"\n");
    let env = [("KITBAG_LIMITS_OUTPUT", "64KiB")];
    snapshot!("config: show", &workspace.run_with(&["config", "--show"], "", &env).shown());
    let rows = workspace.run_with(&["config", "--show", "--json"], "", &env).json();
    assert_eq!(rows[0]["key"], "workspace");
    snapshot!("config: describe", &workspace.run(&["describe", "probe"]).shown());
    snapshot!("config: describe as JSON", &workspace.run(&["describe", "probe", "--json"]).shown());
    snapshot!("config: describe a built-in", &workspace.run(&["describe", "learn"]).shown());
}

#[test]
fn a_workspace_raises_a_limit_as_far_as_the_user_lets_it() {
    let workspace = Workspace::with_probe("[tools.probe.limits]\nmemory = \"96MiB\"\n");
    let allocate: &[&str] = &["run", "probe", "do=allocate", "bytes:=75000000"];
    let mut report = String::from("# Only the workspace says so.\n");
    report.push_str(&workspace.session(&[allocate]));
    report.push_str("# The user lets it.\n");
    workspace.own_config("[ceiling]\nmemory = \"96MiB\"\n");
    report.push_str(&workspace.session(&[allocate, &["config", "--show"]]));
    report.push_str("# A workspace lets itself.\n");
    workspace.own_config("");
    workspace.config("[ceiling]\nmemory = \"96MiB\"\n");
    report.push_str(&workspace.session(&[&["list"]]));
    snapshot!("config: ceilings", &report);
}

#[test]
fn everything_wrong_with_a_file_is_reported_at_once() {
    let workspace = Workspace::new();
    workspace.config(
        "[tools.word_count]\nsource = \"local\"\nwasm = \"count.wasm\"\ndesciption = \"Count\"\n\
         [tools.word_count.parameters.path]\ntyp = \"string\"\n\
         [tools.word_count.limits]\nmemory = \"lots\"\ntime = 5\n\
         [tools.word_count.grants]\nfilesystem = [{ host = \"nowhere\", guest = \"data\" }]\nhttp = [\"example.com\"]\n\
         [knowledge.team]\nsubject = \"notes\"\n",
    );
    snapshot!("config: everything wrong", &workspace.run(&["list"]).shown());
    snapshot!("config: everything wrong, checked", &workspace.run(&["check"]).shown());
    workspace.config("[tools\n");
    snapshot!("config: no TOML", &workspace.run(&["list"]).shown());
}

#[test]
fn a_check_loads_every_tool_and_reports_every_problem() {
    let good = full();
    assert_eq!(good.run(&["check"]).success(), "3 tools, 1 topic: no problem\n");
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

#[test]
fn an_unknown_variable_is_a_warning() {
    let workspace = Workspace::new();
    let run = workspace.run_with(&["list"], "", &[("KITBAG_LIMIT_TIME", "1s")]);
    snapshot!("config: unknown variable", &run.shown());
}

#[test]
fn the_workspace_is_found_upwards_or_named() {
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
fn nothing_but_data_is_on_standard_output() {
    let workspace = full();
    let check = |arguments: &[&str]| {
        let run = workspace.run(arguments);
        assert_eq!(run.stdout, "", "{}", run.shown());
        assert!(!run.stderr.is_empty());
    };
    check(&["run", "nothing"]);
    check(&["run", "probe", "do=unknown"]);
    check(&["inspect", "nowhere.wasm"]);
    check(&["describe", "nothing"]);
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
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
