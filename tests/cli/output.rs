//! No terminal escapes from configuration, tools or arguments are printed.

use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;

use kitbag::base::text::is_hidden;
use serde_json::json;

use crate::support::mcp::Client;
use crate::support::{Workspace, crafted, guest};

/// Characters that would clear a terminal, set its title, reverse a line or hide a part of it.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{200b}\u{8}\u{7f}\r";

/// The start of the escaped [`EVIL`]: for a person, or in JSON.
const SPELLED_OUT: [&str; 2] = ["\\u{1b}[2J", "\\u001b[2J"];

/// A workspace in which every possible string is evil.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let evil = |text: &str| format!("{text}{EVIL}");
    let schema = json!({
        "type": "object",
        "title": EVIL,
        "properties": { evil("key"): { "type": "string", "description": EVIL, "default": EVIL,
                                       "enum": [EVIL], "pattern": EVIL } },
    });
    let description = json!({ "tools": [{
        "name": "evil", "title": EVIL, "description": EVIL, "inputSchema": schema,
        "outputSchema": schema,
        "grants": { "filesystem": [{ "guest": evil("/x"), "mode": "rw" }] },
    }]});
    workspace.file(&evil("evil.wasm"), crafted::describing(&description.to_string()));
    let broken = json!({ "tools": [{ "name": "broken", "inputSchema": { "type": EVIL } }] });
    workspace.file(&evil("broken.wasm"), crafted::describing(&broken.to_string()));
    fs::create_dir_all(workspace.path(&evil("directory"))).unwrap();
    workspace.file(&evil("kb/subject"), evil("content"));
    workspace.file(&evil("kb/learned.md"), evil("content"));
    // A JSON string is also a TOML string, except for DEL.
    let quoted = |text: &str| json!(evil(text)).to_string().replace('\u{7f}', "\\u007f");
    let path = |name: &str| quoted(name);
    workspace.config(&format!(
        "[tools.evil]\nsource = \"local\"\nwasm = {wasm}\n\
         [tools.evil.grants]\nfilesystem = [{{ host = {host}, guest = \"/y\" }}]\n\
         [tools.evil.answers]\n{key} = {value}\n\
         [tools.broken]\nsource = \"local\"\nwasm = {broken}\n\
         [tools.said]\nsource = \"local\"\nwasm = {wasm}\ntitle = {value}\ndescription = {value}\n\
         [tools.said.parameters.p]\ntype = \"string\"\ndescription = {value}\ndefault = {value}\n\
         [tools.gone]\nsource = \"local\"\nwasm = {gone}\n\
         [tools.probe]\nsource = \"local\"\nwasm = {probe:?}\n\
         [knowledge.kb]\nsubjects = \"kb\"\ntitle = {value}\nintroduction = {value}\n\
         description = {value}\nlearned = [\"learned*\"]\n\
         [knowledge.gone]\nsubjects = {gone}\n",
        wasm = path("evil.wasm"),
        broken = path("broken.wasm"),
        gone = path("gone"),
        host = path("directory"),
        key = quoted("key"),
        value = quoted("value"),
        probe = guest("probe"),
    ));
    workspace
}

/// Every command, with every outcome.
fn commands() -> Vec<Vec<String>> {
    let evil = |text: &str| format!("{text}{EVIL}");
    let mut commands: Vec<Vec<String>> = vec![
        vec!["list".into()],
        vec!["describe".into(), "evil".into()],
        vec!["describe".into(), "said".into()],
        vec!["describe".into(), "gone".into()],
        vec!["describe".into(), evil("no")],
        vec!["inspect".into(), evil("evil.wasm")],
        vec!["inspect".into(), evil("kb/subject")],
        vec!["inspect".into(), evil("none")],
        vec!["check".into()],
        vec!["prompt".into()],
        vec!["config".into(), "--show".into()],
        vec!["config".into(), "--schema".into()],
        vec!["cache".into()],
        vec!["mcp-config".into(), "claude-code".into()],
        vec!["completions".into(), "bash".into()],
        vec!["man".into()],
        vec![evil("command")],
        vec!["list".into(), evil("--flag")],
        vec!["list".into(), "--workspace".into(), evil("none")],
        vec!["serve".into(), "--http".into(), evil("address")],
        vec![
            "serve".into(),
            "--http".into(),
            "127.0.0.1:0".into(),
            "--token-file".into(),
            evil("x"),
        ],
    ];
    for format in ["openai-chat", "openai-responses", "anthropic", "gemini", "mcp"] {
        commands
            .push(["export", "--format", format, "evil", "said", "probe"].map(Into::into).into());
        commands.push(["export", "--format", format, "broken"].map(Into::into).into());
    }
    for arguments in [
        vec!["learn".into(), "topic=kb".into()],
        vec!["learn".into(), "topic=kb".into(), "subjects=**".into()],
        vec!["learn".into(), "topic=gone".into()],
        vec!["learn".into(), evil("topic=")],
        vec!["learn".into(), "topic=kb".into(), evil("subjects=")],
        vec!["learn".into(), evil("key") + "=1"],
        vec!["evil".into(), evil("key") + "=" + EVIL],
        vec!["evil".into(), "--args".into(), evil("{")],
        vec!["evil".into(), "--args".into(), evil("@")],
        vec!["broken".into()],
        vec!["gone".into()],
        vec![evil("no")],
        vec!["probe".into(), "do=echo".into(), evil("text=")],
        vec!["probe".into(), evil("do=")],
        vec!["probe".into(), "do=fail".into(), evil("message=")],
        vec!["probe".into(), "do=panic".into(), evil("message=")],
        vec!["probe".into(), "do=ask".into(), evil("text="), evil("id=x"), evil("default=x")],
        vec!["probe".into(), "do=ask".into(), "--answer".into(), evil("go-on=")],
        vec!["probe".into(), "do=print".into(), evil("text="), "-v".into()],
        vec!["probe".into(), "do=log".into(), evil("text="), evil("message="), "-v".into()],
        vec!["probe".into(), "do=progress".into(), evil("message=")],
        vec!["probe".into(), "do=emit".into(), evil("text="), evil("uri=x:"), evil("mime=x/")],
        vec!["probe".into(), "do=echo".into(), evil("text="), "--format-arguments".into()],
    ] {
        commands.push([vec!["run".into()], arguments].concat());
    }
    let with_json = commands.clone().into_iter().map(|mut command| {
        command.push("--json".into());
        command
    });
    commands.into_iter().chain(with_json.collect::<Vec<_>>()).collect()
}

#[track_caller]
fn check(command: &[String], stream: &str, text: &str) {
    let is_allowed = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    assert!(text.chars().all(is_allowed), "{command:?} on {stream}: {text:?}");
}

#[test]
fn no_command_prints_terminal_escapes() {
    let workspace = workspace();
    let mut spelled_out = 0;
    for command in commands() {
        let output = workspace.command().args(&command).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        check(&command, "standard error", &stderr);
        let stdout = String::from_utf8(output.stdout).unwrap();
        // If standard output is not a terminal, a tool's answer is data, and so is the prompt.
        let is_data =
            matches!(&*command[0], "run" | "prompt") && !command.contains(&"--json".into());
        if !is_data {
            check(&command, "standard output", &stdout);
        }
        spelled_out +=
            usize::from(SPELLED_OUT.iter().any(|it| (stdout.clone() + &stderr).contains(it)));
    }
    // The evil strings did reach the output.
    assert!(spelled_out > 60, "{spelled_out}");
}

#[test]
fn no_command_writes_foreign_escapes_to_a_terminal() {
    let workspace = workspace();
    for command in commands() {
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut child = {
            let slave = || terminal.slave.try_clone().unwrap();
            let mut start = workspace.command();
            // Without `man`, which marks bold letters by overstriking.
            start.env("PATH", "/nowhere");
            start.args(&command).stdin(Stdio::null()).stdout(slave()).stderr(slave());
            start.spawn().unwrap()
        };
        drop(terminal.slave);
        let mut seen = Vec::new();
        // Linux returns an error when reading from a terminal that is closed.
        let _ = File::from(terminal.master).read_to_end(&mut seen);
        child.wait().unwrap();
        // The terminal ends lines with CR LF, and kitbag redraws its own lines with CR.
        let text = String::from_utf8(seen).unwrap().replace("\r\n", "\n").replace("\r\u{1b}[K", "");
        // The styles of clap's help.
        let text = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[4m"]
            .iter()
            .fold(text, |text, style| text.replace(style, ""));
        check(&command, "a terminal", &text);
    }
}

#[test]
fn configuration_errors_and_logs_have_no_terminal_escapes() {
    let workspace = workspace();
    for arguments in [&[][..], &["--log-format", "json"], &["--log", "trace"]] {
        let mut client = Client::start(&workspace, arguments);
        let version = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                              "clientInfo": { "name": EVIL, "version": EVIL } });
        client.request("initialize", version);
        client.notify("notifications/initialized", json!({}));
        for name in ["evil", "broken", "gone", EVIL] {
            client.request("tools/call", json!({ "name": name, "arguments": { EVIL: EVIL } }));
        }
        client.request("tools/list", json!({}));
        let (_, stderr) = client.close();
        check(&["serve".into()], "its log", &stderr);
    }
    let quoted = json!(EVIL).to_string().replace('\u{7f}', "\\u007f");
    for config in [
        format!("{quoted} = 1"),
        format!("[tools.{quoted}]"),
        format!("[tools.x]\nsource = {quoted}"),
        format!("[knowledge.{quoted}]"),
        "x = \u{202e}".to_owned(),
    ] {
        workspace.config(&config);
        for command in [["check"].as_slice(), &["list"], &["list", "--json"]] {
            let run = workspace.run(command);
            assert_eq!(run.code, if command == ["check"] { 4 } else { 0 }, "{}", run.shown());
            check(std::slice::from_ref(&config), "anything", &(run.stdout + &run.stderr));
        }
    }
}
