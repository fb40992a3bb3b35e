//! Tools with manifests of other hosts: the written configuration is valid, the printed commands
//! can be pasted, and changes are shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::crafted::describing;
use crate::support::{Run, Workspace, snapshot};

/// A component that declares only its name.
fn component(name: &str) -> Vec<u8> {
    describing(&json!({ "name": name }).to_string())
}

/// A directory in the home directory with a component and a manifest.
fn skill(workspace: &Workspace, file: &str, manifest: &str) -> PathBuf {
    let directory = workspace.home().join("skill");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("tool.wasm"), component("tool")).unwrap();
    fs::write(directory.join(file), manifest).unwrap();
    directory
}

fn run(workspace: &Workspace, command: &str, path: &Path, options: &[&str]) -> Run {
    workspace.run(&[&[command], options, &[path.to_str().unwrap()]].concat())
}

fn read(workspace: &Workspace, path: &str) -> String {
    fs::read_to_string(workspace.path(path)).unwrap_or_default()
}

/// The commands in kitbag's output that store a secret, as printed.
fn commands(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.split_once("store it with `"));
    lines.map(|(_, rest)| rest.rsplit_once('`').unwrap().0).collect()
}

#[test]
fn printed_commands_run_only_kitbag() {
    let evil = "$(touch PWNED)`touch PWNED`'; touch PWNED; '\"; touch PWNED\n!!";
    let entry = |name: &str, location: serde_json::Value, host: &str| json!({ "secret_name": name, "location": location, "host_patterns": [host] });
    let text = json!({ "http": { "credentials": {
        evil: entry("token_1", json!({ "type": "bearer" }), "a.example"),
        "name": entry(evil, json!({ "type": "bearer" }), "a.example"),
        "user": entry("token_2", json!({ "type": "basic", "username": evil }), "a.example"),
        "header": entry("token_3", json!({ "type": "header", "name": evil }), "a.example"),
        "prefix": entry("token_4", json!({ "type": "header", "name": "x-key", "prefix": "'$(touch PWNED)`touch PWNED` " }), "a.example"),
        "query": entry("token_5", json!({ "type": "query_param", "name": evil }), "a.example"),
        "path": entry("token_6", json!({ "type": "url_path", "placeholder": evil }), "a.example"),
        "host": entry("token_7", json!({ "type": "bearer" }), evil),
    } } });
    let workspace = Workspace::new();
    let directory = skill(&workspace, "tool.capabilities.json", &text.to_string());
    let shown = run(&workspace, "add", &directory, &["--yes"]).success();
    let as_json = run(&workspace, "add", &directory, &["--yes", "--json", "--name", "b"]).json();
    let notes: Vec<_> =
        as_json["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    // A program of the same name that only records its arguments.
    let elsewhere = workspace.outside().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let fake = elsewhere.join("kitbag");
    fs::write(&fake, "#!/bin/sh\nprintf '%s\\n' \"$*\" >> ran\n").unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    for text in [&shown, &notes.join("\n")] {
        let found = commands(text);
        assert_eq!(found.len(), 2, "{text}");
        for shell in ["sh", "bash"] {
            let ran = elsewhere.join("ran");
            let _ = fs::remove_file(&ran);
            for command in &found {
                let path = format!("{}:/usr/bin:/bin", elsewhere.display());
                let status = Command::new(shell)
                    .args(["-c", command])
                    .env("PATH", path)
                    .current_dir(&elsewhere)
                    .status();
                assert!(status.unwrap().success(), "{command}");
            }
            let mut ran: Vec<_> =
                fs::read_to_string(&ran).unwrap().lines().map(str::to_owned).collect();
            ran.sort();
            let to = "--to https://a.example/**";
            assert_eq!(
                ran,
                [
                    format!("secret set token_1 {to} --bearer"),
                    format!(
                        "secret set token_4 {to} --header=x-key \
                         --prefix='$(touch PWNED)`touch PWNED` "
                    ),
                ]
            );
            assert!(!elsewhere.join("PWNED").exists());
        }
    }
}

#[test]
fn added_tools_never_break_a_workspace() {
    let list = |count: usize, entry: fn(usize) -> String| {
        (0..count).map(entry).collect::<Vec<_>>().join(", ")
    };
    let cases = [
        ("skill.toml", format!("[capabilities]\nenv = [{}]\n", list(65, |i| format!("\"V{i}\"")))),
        (
            "skill.toml",
            format!(
                "[capabilities.network]\ndomains = [{}]\n",
                list(257, |i| format!("\"h{i}.example\""))
            ),
        ),
        (
            "skill.toml",
            format!("[capabilities.filesystem]\nread = [{}]\n", list(65, |i| format!("\"d{i}\""))),
        ),
        (
            "tool.capabilities.json",
            format!(
                "{{\"tool_invoke\": {{\"aliases\": {{{}}}}}}}",
                list(65, |i| format!("\"a{i}\": \"first\""))
            ),
        ),
        ("skill.toml", "[capabilities.filesystem]\nread = [\".\"]\nwrite = [\"d1\"]\n".to_owned()),
    ];
    let mut shown = String::new();
    for (file, manifest) in cases {
        let workspace = Workspace::new().untrusted();
        for number in 0..65 {
            fs::create_dir(workspace.path(&format!("d{number}"))).unwrap();
        }
        let first = workspace.home().join("first.wasm");
        fs::write(&first, component("first")).unwrap();
        run(&workspace, "add", &first, &["--yes"]).success();
        let directory = skill(&workspace, file, &manifest);
        let added =
            run(&workspace, "add", &directory, &["--yes", "--grant", "requested"]).success();
        let dropped: Vec<_> =
            added.lines().filter(|line| line.ends_with("it is dropped")).collect();
        assert!(!dropped.is_empty(), "{added}");
        shown.push_str(&dropped.join("\n"));
        shown.push('\n');
        for tool in ["first", "tool"] {
            assert_eq!(workspace.run(&["run", tool]).success(), "ok\n", "{added}");
        }
        assert_eq!(workspace.run(&["check"]).code, 0, "{}", workspace.run(&["check"]).shown());
        run(&workspace, "add", &first, &["--yes", "--name", "second"]).success();
        workspace.run(&["remove", "tool"]).success();
        assert_eq!(workspace.run(&["run", "second"]).success(), "ok\n");
    }
    snapshot!("dropped", &shown);
}

#[test]
fn a_huge_manifest_never_makes_files_too_large_to_read() {
    let workspace = Workspace::new();
    let text = "x ".repeat(120_000);
    let manifest = format!("[skill]\ndescription = \"{text}\"\n");
    let directory = skill(&workspace, "skill.toml", &manifest);
    let mut dropped = 0;
    for number in 0..6 {
        let name = format!("tool_{number}");
        let shown = run(&workspace, "add", &directory, &["--yes", "--name", &name]).success();
        dropped += usize::from(shown.contains("would be larger than 1 MiB; it is dropped"));
        assert_eq!(workspace.run(&["run", &name]).success(), "ok\n");
    }
    assert_eq!(dropped, 2);
    assert!(read(&workspace, ".kitbag/config.toml").len() <= 1 << 20);
    assert!(read(&workspace, ".kitbag/kitbag.lock").len() < 16 << 10);
}

#[test]
fn a_manifest_that_is_not_utf8_requests_nothing() {
    let workspace = Workspace::new();
    let directory = skill(&workspace, "skill.toml", "");
    fs::write(directory.join("skill.toml"), b"[capabilities]\nenv = [\"LANG\"] # caf\xe9\n")
        .unwrap();
    let shown = run(&workspace, "add", &directory, &["--yes", "--grant", "requested"]).success();
    assert!(shown.contains("  it is not UTF-8: see line 2; it requests nothing"), "{shown}");
    assert!(!read(&workspace, ".kitbag/config.toml").contains("LANG"));
}
