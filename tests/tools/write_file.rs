//! `write_file`, through the binary. The rules in detail are tested in `guest-tools/files`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::files::names;
use crate::support::{Workspace, snapshot};

#[test]
fn files_are_written_and_unwritable_files_are_named() {
    let workspace = Workspace::of_files();
    workspace.file("a.txt", "one\ntwo\n");
    workspace.file(".env", "token = 1234\n");
    fs::create_dir_all(workspace.path(".git")).unwrap();
    let calls = [
        json!({ "path": "new/日本.txt", "content": "1\n" }),
        json!({ "path": "a.txt", "content": "one\n2\n" }),
        json!({ "path": "a.txt", "content": "three", "append": true }),
        json!({ "path": "a.txt", "content": "x", "expect": "00000000" }),
        json!({ "path": "a.txt", "content": "x", "dry_run": true }),
        json!({ "path": ".git/config", "content": "x" }),
        json!({ "path": ".kitbag/config.toml", "content": "x" }),
        json!({ "path": ".env", "content": "x" }),
        json!({ "path": "new/.env", "content": "x" }),
        json!({ "path": "../out", "content": "x" }),
        json!({ "path": "/etc/passwd", "content": "x" }),
        json!({ "path": "new", "content": "x" }),
        json!({ "path": "a.txt/in", "content": "x" }),
    ];
    let show = |call: serde_json::Value| {
        let run = workspace.tool("write_file", &call, &[]);
        format!("{call}\n{}{}\n", run.stdout, run.stderr)
    };
    snapshot!("calls", &calls.into_iter().map(show).collect::<String>());
    assert_eq!(names(&workspace.root()), [".env", ".git", ".kitbag", "a.txt", "new"]);
}

#[test]
fn an_existing_file_keeps_its_mode() {
    let workspace = Workspace::of_files();
    for (before, after) in [(0o755, 0o755), (0o600, 0o600), (0o644, 0o644), (0o4755, 0o755)] {
        let file = workspace.file("script", "1");
        fs::set_permissions(&file, fs::Permissions::from_mode(before)).unwrap();
        workspace.tool("write_file", &json!({ "path": "script", "content": "2" }), &[]).success();
        assert_eq!(fs::read_to_string(&file).unwrap(), "2");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, after, "{before:o}");
    }
    workspace.tool("write_file", &json!({ "path": "new", "content": "2" }), &[]).success();
    let mode = |path: &str| fs::metadata(workspace.path(path)).unwrap().permissions().mode();
    workspace.file("other", "");
    assert_eq!(mode("new"), mode("other"));
}

#[test]
fn a_full_disk_keeps_the_old_content() {
    let workspace = Workspace::of_files();
    let file = workspace.file("a", "old");
    // The limit for written bytes fails like a full disk.
    workspace.config("[tools.write_file]\nsource = \"builtin\"\nlimits.written = \"16KiB\"\n");
    let content = "x".repeat(100_000);
    let run = workspace.tool("write_file", &json!({ "path": "a", "content": content }), &[]);
    assert_ne!(run.code, 0, "{}", run.shown());
    let limit = "limit: written (16 KiB): write less in one call";
    assert!(run.stderr.contains(limit), "{}", run.shown());
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(names(&workspace.root()), [".kitbag", "a"]);
}

#[test]
fn processes_that_append_to_one_file_lose_no_line() {
    const PROCESSES: usize = 12;
    let workspace = Workspace::of_files();
    workspace.file("log", "");
    let calls: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let line = json!({ "path": "log", "content": format!("{number}\n"), "append": true });
            workspace.start("write_file", &line, &[])
        })
        .collect();
    for mut call in calls {
        assert!(call.wait().unwrap().success());
    }
    let content = fs::read_to_string(workspace.path("log")).unwrap();
    let mut lines: Vec<usize> = content.lines().map(|line| line.parse().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..PROCESSES).collect::<Vec<_>>());
    assert_eq!(names(&workspace.root()), [".kitbag", "log"]);
}
