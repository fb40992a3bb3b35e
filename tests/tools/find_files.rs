//! `find_files`, through the real binary. Its results are compared with ripgrep in
//! `guest-tools/search`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::thread;

use serde_json::json;

use crate::support::{CallInTest, Workspace};

#[track_caller]
fn check(workspace: &Workspace, arguments: &[&str], expected: &str) {
    let run = workspace.run(&[&["run", "find_files"], arguments].concat());
    assert_eq!(run.stdout.trim_end(), expected, "{}", run.stderr);
}

#[test]
fn ten_thousand_files_and_deep_directories_are_walked() {
    let workspace = Workspace::with_toolsets(&["search"]);
    for number in 0..10_000 {
        workspace.file(&format!("many/{number:05}"), "");
    }
    let deep = "d/".repeat(300);
    workspace.file(&format!("{deep}end"), "");
    check(&workspace, &["globs=[\"end\"]"], &format!("{deep}end"));
    check(
        &workspace,
        &["path=many", "limit=2"],
        "many/00000\nmany/00001\n[omitted: 9998 paths (`limit`)]",
    );
}

#[test]
fn concurrent_calls_have_the_same_answer() {
    let workspace = Workspace::with_toolsets(&["search"]);
    workspace.file("a/b.rs", "");
    let kitbag = workspace.kitbag();
    let ask = || kitbag.call_in_test("find_files", json!({}));
    thread::scope(|scope| {
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), "a/b.rs");
        }
    });
}

#[test]
fn odd_names_are_shown_on_one_line_or_counted() {
    let workspace = Workspace::with_toolsets(&["search"]);
    workspace.file("two\nlines", "");
    fs::write(workspace.path("").join(OsStr::from_bytes(b"\xff\xfe")), "").unwrap();
    check(&workspace, &[], "two\\nlines\n[passed over 1 name that is not UTF-8]");
}
