//! `read_file`, through the binary. The rules in detail are tested in `guest-tools/files`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use crate::support::{Workspace, guest, snapshot};

fn read(workspace: &Workspace, arguments: Value) -> String {
    let run = workspace.tool("read_file", &arguments, &[]);
    format!("{}{}", run.stdout, run.stderr)
}

#[test]
fn files_are_read_and_unreadable_files_are_named() {
    let workspace = Workspace::with_toolsets(&["files"]);
    workspace.file("src/main.rs", "fn main() {\n    println!(\"é\");\n}\n");
    workspace.file("empty", "");
    workspace.file("latin", b"caf\xe9\r\n");
    workspace.file("logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    workspace.file("naïve 日本.txt", "ok\n");
    workspace.file("line\nbreak", "ok\n");
    workspace.file(".env", "token = 1234\n");
    workspace.file("locked/in", "");
    fs::write(workspace.outside().join("secret.txt"), "outside").unwrap();
    symlink("../secret.txt", workspace.path("out")).unwrap();
    symlink("nowhere", workspace.path("dangling")).unwrap();
    UnixListener::bind(workspace.path("socket")).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(workspace.path("fifo"))
            .status()
            .unwrap()
            .success()
    );
    let calls = [
        json!({ "path": "src/main.rs" }),
        json!({ "path": "src/main.rs", "start_line": 2, "numbered": true }),
        json!({ "paths": ["empty", "latin", "naïve 日本.txt", "line\nbreak"] }),
        json!({ "path": "/workspace/empty" }),
        json!({ "path": "logo.png" }),
        json!({ "path": "src" }),
        json!({ "path": "src/mian.rs" }),
        json!({ "path": "out" }),
        json!({ "path": "dangling" }),
        json!({ "path": "../secret.txt" }),
        json!({ "path": "/etc/passwd" }),
        json!({ "path": "fifo" }),
        json!({ "path": "socket" }),
        json!({ "path": ".env" }),
        json!({ "path": "a\0b" }),
        json!({ "path": "src/main.rs/x" }),
        json!({}),
        json!({ "path": "x", "start_line": "2" }),
    ];
    let session: String = calls
        .into_iter()
        .map(|call| format!("{call}\n{}\n", read(&workspace, call.clone())))
        .collect();
    snapshot!("calls", &session);
}

#[test]
fn a_file_without_permission_to_read_is_reported() {
    let workspace = Workspace::with_toolsets(&["files"]);
    let file = workspace.file("private", "x");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let answer = read(&workspace, json!({ "path": "private" }));
    // Root can read it.
    let expected = match fs::read(&file) {
        Ok(_) => "[1 line, no final newline, digest 2d711642b726]\nx\n",
        Err(_) => {
            "error: `private` cannot be read: the permissions of the file system do not allow it\n"
        }
    };
    assert_eq!(answer, expected);
}

#[test]
fn a_huge_file_is_read_in_parts_within_the_memory_limit() {
    let workspace = Workspace::with_toolsets(&["files"]).with_time();
    let line = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    workspace.file("huge", line.repeat(2_000_000));
    workspace.file("one line", "x".repeat(20_000_000));
    let answer = read(&workspace, json!({ "path": "huge", "start_line": 1_999_999 }));
    assert_eq!(answer, format!("[lines 1999999-2000000 of 122.1 MiB]\n{line}{line}"));
    let answer = read(&workspace, json!({ "path": "one line", "max_bytes": 5 }));
    assert_eq!(answer, "[lines 1-1 of 19.1 MiB; start_line=1 start_column=6 reads on]\nxxxxx\n");
}

#[test]
fn it_imports_files_clocks_and_random_but_no_network() {
    let component = guest("files");
    let shown = Workspace::new().run(&["inspect", component.to_str().unwrap(), "--json"]).json();
    let imports = shown["imports"].as_array().unwrap();
    let names: Vec<_> = imports.iter().map(|it| it["name"].as_str().unwrap_or_default()).collect();
    let foreign: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("wasi:sockets") || name.starts_with("wasi:http"))
        .collect();
    assert!(!names.is_empty() && foreign.is_empty(), "{names:?}");
}
