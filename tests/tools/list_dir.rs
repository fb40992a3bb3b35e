//! `list_dir`, through the binary. The rules in detail are tested in `guest-tools/files`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{Workspace, snapshot};

fn list(workspace: &Workspace, arguments: Value) -> String {
    let run = workspace.tool("list_dir", &arguments, &[]);
    format!("{}{}", run.stdout, run.stderr)
}

#[test]
fn a_directory_is_listed_with_its_omissions() {
    let workspace = Workspace::with_toolsets(&["files"]);
    for path in
        ["src/main.rs", "src/deep/er/x", ".env", "keys/server.pem", ".ssh/id_rsa", "日本", "a\nb"]
    {
        workspace.file(path, "");
    }
    workspace.file(".git/HEAD", "ref: x\n");
    fs::write(workspace.path("src").join(OsStr::from_bytes(b"\xff")), "").unwrap();
    symlink("src", workspace.path("link")).unwrap();
    fs::create_dir(workspace.path("empty")).unwrap();
    let calls = [
        json!({}),
        json!({ "depth": 3 }),
        json!({ "path": "empty" }),
        json!({ "path": "link" }),
        json!({ "path": "keys" }),
        json!({ "path": ".ssh" }),
        json!({ "path": "src/main.rs" }),
        json!({ "path": "scr" }),
        json!({ "path": ".." }),
        json!({ "limit": 2, "after": "a\nb" }),
    ];
    let session: String = calls
        .into_iter()
        .map(|call| format!("{call}\n{}\n", list(&workspace, call.clone())))
        .collect();
    snapshot!("calls", &session);
}

#[test]
fn a_hundred_thousand_entries_are_listed_in_pages() {
    let workspace = Workspace::with_toolsets(&["files"]).with_time();
    let directory = workspace.path("many");
    fs::create_dir(&directory).unwrap();
    for number in 0..100_000 {
        fs::File::create(directory.join(format!("{number:06}"))).unwrap();
    }
    let answer = list(&workspace, json!({ "path": "many", "limit": 2, "after": "050000" }));
    assert_eq!(answer, "050001\n050002\n[49997 more; after=\"050002\" reads on]\n");
}
