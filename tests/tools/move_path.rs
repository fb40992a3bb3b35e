//! `move_path`, through the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::Workspace;

#[test]
fn a_path_is_moved_and_keeps_its_mode() {
    let workspace = Workspace::of_files();
    let private = workspace.file("private", "1");
    workspace.file("open", "22");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    let onto = json!({ "path": "private", "to": "open", "overwrite": true });
    let asked = workspace.tool("move_path", &onto, &[]);
    assert!(asked.stderr.contains("Replace `open` (2 B) by `private` (1 B)?"), "{}", asked.shown());
    assert!(private.exists());
    workspace.tool("move_path", &onto, &["overwrite=true"]).success();
    // What is moved was not made in the call: it is no more open than before.
    let mode = fs::metadata(workspace.path("open")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
}

#[test]
fn nothing_is_moved_that_no_tool_moves() {
    let workspace = Workspace::of_files();
    workspace.file("a", "1");
    workspace.file(".env", "token = 1234\n");
    fs::create_dir_all(workspace.path("repository/.git")).unwrap();
    let check = |path: &str, to: &str, expected: &str| {
        let run = workspace.tool("move_path", &json!({ "path": path, "to": to }), &[]);
        assert!(run.stderr.contains(expected), "{path} {to}: {}", run.shown());
        assert_eq!(run.code, 1);
    };
    check("a", ".git/a", "no tool changes `.git`");
    check("a", ".env.local", "looks like a secret");
    check(".env", "a.txt", "looks like a secret");
    check("a", "../a", "leads out of what this tool is granted");
    check(".kitbag", "kitbag", "no tool changes `.kitbag`");
    assert!(workspace.path("a").exists() && workspace.path(".env").exists());
}
