//! Files with a second name, or reached through a link, remain protected: the native code in the
//! cache, the files that a server was started with, kitbag itself, and the targets of sealed names.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::{CallInTest, Run, Workspace, copy_binary, probe};

const WRITES_WORKSPACE: &str =
    "grants.filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n";

/// A workspace that `probe` may write, with its own cache.
fn writable_workspace() -> Workspace {
    let workspace = Workspace::with_own_cache();
    workspace.config(&probe(WRITES_WORKSPACE));
    workspace
}

fn run(workspace: &Workspace, arguments: &Value) -> Run {
    workspace.run(&["run", "probe", "--args", &arguments.to_string()])
}

#[track_caller]
fn assert_refused(workspace: &Workspace, arguments: &Value) {
    let run = run(workspace, arguments);
    assert!(run.stdout.ends_with("refused (not-permitted)\n"), "{arguments}: {}", run.shown());
}

fn write(path: &str) -> Value {
    json!({ "do": "write", "path": path, "text": "changed" })
}

#[test]
fn a_hard_linked_cache_entry_is_replaced_and_never_written() {
    let workspace = writable_workspace();
    run(&workspace, &write("a")).success();
    let entry = workspace.cached();
    let original = fs::read(&entry).unwrap();
    fs::create_dir(workspace.path("backup")).unwrap();
    let second = workspace.path("backup/x");
    fs::hard_link(&entry, &second).unwrap();
    for arguments in [
        write("backup/x"),
        json!({ "do": "set-size", "path": "backup/x", "bytes": 0 }),
        json!({ "do": "link", "old": "backup/x", "new": "third" }),
    ] {
        // The previous call has replaced the entry by a file with only one name.
        fs::remove_file(&entry).unwrap();
        fs::hard_link(&second, &entry).unwrap();
        let run = run(&workspace, &arguments);
        let expected = "was hard-linked under another name; it was compiled again and replaced";
        assert!(run.stderr.contains(expected), "{}", run.shown());
        assert_eq!(fs::metadata(&entry).unwrap().nlink(), 1);
        assert_ne!(fs::metadata(&entry).unwrap().ino(), fs::metadata(&second).unwrap().ino());
    }
    // An entry that got its second name after its check.
    fs::remove_file(&second).unwrap();
    let kitbag = workspace.kitbag();
    let call = |arguments: Value| kitbag.call_in_test("probe", arguments);
    assert_eq!(call(write("a")), "write a: 7 bytes");
    fs::hard_link(&entry, &second).unwrap();
    for arguments in [
        write("backup/x"),
        json!({ "do": "append", "path": "backup/x", "text": "x" }),
        json!({ "do": "set-size", "path": "backup/x", "bytes": 0 }),
        json!({ "do": "truncate", "path": "backup/x" }),
        json!({ "do": "link", "old": "backup/x", "new": "third" }),
        json!({ "do": "rename", "old": "backup/x", "new": "third" }),
    ] {
        let got = call(arguments.clone());
        assert!(got.ends_with("refused (not-permitted)"), "{arguments}: {got}");
    }
    assert!(fs::read(&entry).unwrap() == original, "the entry was changed");
    // Other hard-linked files can be written as usual.
    fs::write(workspace.path("one"), "").unwrap();
    fs::hard_link(workspace.path("one"), workspace.path("two")).unwrap();
    assert_eq!(call(write("two")), "write two: 7 bytes");
}

#[test]
fn a_cache_entry_cannot_be_opened_for_writing_by_its_owner() {
    let workspace = writable_workspace();
    run(&workspace, &write("a")).success();
    let mode = fs::metadata(workspace.cached()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
}

#[test]
fn the_key_and_token_of_a_server_are_protected() {
    let workspace = writable_workspace();
    let files = ["key", "token"].map(|name| {
        let path = workspace.file(name, "k".repeat(40));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    });
    // A path relative to the current directory, and an absolute path.
    let arguments = ["--state-key-file", "key", "--token-file", &files[1]];
    let server = HttpServer::start(&workspace, &arguments);
    let call = |arguments: Value| {
        let params = json!({ "name": "probe", "arguments": arguments });
        let headers = format!("Authorization: Bearer {}\r\n", "k".repeat(40));
        server.message(&headers, "tools/call", params).body
    };
    for arguments in [
        write("key"),
        write("token"),
        json!({ "do": "read", "path": "key" }),
        json!({ "do": "read", "path": "token" }),
        json!({ "do": "remove", "path": "key" }),
        json!({ "do": "rename", "old": "token", "new": "aside" }),
        json!({ "do": "rename", "old": "other", "new": "key" }),
    ] {
        fs::write(workspace.path("other"), "").unwrap();
        let got = call(arguments.clone());
        assert!(got.contains("refused (not-permitted)"), "{arguments}: {got}");
    }
    assert!(call(write("other")).contains("7 bytes"));
}

#[test]
fn kitbags_binary_is_not_changed_moved_or_replaced() {
    let workspace = writable_workspace();
    let program = workspace.path("bin/kitbag");
    fs::create_dir(workspace.path("bin")).unwrap();
    copy_binary(&program);
    fs::write(workspace.path("other"), "").unwrap();
    symlink("bin/kitbag", workspace.path("link")).unwrap();
    fs::hard_link(&program, workspace.path("second")).unwrap();
    let run = |arguments: &Value| {
        let mut command = Command::new(&program);
        command.current_dir(workspace.root()).env_clear();
        command
            .envs(workspace.command().get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.args(["run", "probe", "--args", &arguments.to_string()]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    for arguments in [
        write("bin/kitbag"),
        json!({ "do": "remove", "path": "bin/kitbag" }),
        json!({ "do": "rename", "old": "bin/kitbag", "new": "bin/old" }),
        json!({ "do": "rename", "old": "other", "new": "bin/kitbag" }),
        json!({ "do": "rename", "old": "bin", "new": "aside" }),
        json!({ "do": "link", "old": "bin/kitbag", "new": "third" }),
        json!({ "do": "link", "old": "second", "new": "third" }),
        json!({ "do": "set-times", "path": "link" }),
    ] {
        let got = run(&arguments);
        assert!(got.ends_with("refused (not-permitted)\n"), "{arguments}: {got}");
    }
    assert_eq!(run(&write("bin/other")), "write bin/other: 7 bytes\n");
}

/// The caller's home directory in the user database, regardless of the environment.
fn home_of_account() -> PathBuf {
    let output = Command::new("id").arg("-u").stderr(Stdio::inherit()).output().unwrap();
    let user = String::from_utf8(output.stdout).unwrap();
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let home = fields.into_iter().find(|fields| fields[2] == user.trim()).map(|fields| fields[5]);
    Path::new(home.expect("an account of the caller")).canonicalize().unwrap()
}

#[test]
fn the_accounts_home_is_guarded_regardless_of_home() {
    let workspace = Workspace::new();
    let home = home_of_account();
    let grant =
        format!("grants.filesystem = [{{ host = {home:?}, guest = \"/home\", mode = \"rw\" }}]\n");
    workspace.config(&probe(&grant));
    // Removing a missing directory would return another error if it were not guarded.
    for place in [".config", ".cache", ".local"] {
        assert_refused(&workspace, &json!({ "do": "rmdir", "path": format!("/home/{place}") }));
    }
}
