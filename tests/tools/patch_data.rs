//! `patch_data`, through the real binary. Patches in detail are tested in
//! `guest-tools/data`.

use std::thread;

use serde_json::json;

use crate::support::{CallInTest, Workspace};

#[test]
fn a_failed_operation_is_named_without_a_result() {
    let workspace = Workspace::with_toolsets(&["data"]);
    workspace.file("empty.json", "");
    let check = |arguments: &[&str], expected: &str| {
        let run = workspace.run(&[&["run", "patch_data"], arguments].concat());
        assert!(run.code == 1 && run.stderr.contains(expected), "{}{}", run.stdout, run.stderr);
        assert_eq!(run.stdout, "");
    };
    let patch =
        "patch=[{\"op\":\"add\",\"path\":\"/a\",\"value\":1},{\"op\":\"remove\",\"path\":\"/b\"}]";
    check(&["text={}", patch], "`/patch/1` failed: the value at `path` does not exist");
    check(&["path=empty.json", "merge={}"], "`empty.json` is not JSON");
    let deep = format!("text={}", "[".repeat(60_000));
    check(&[&deep, "merge={}"], "recursion limit exceeded");
}

#[test]
fn concurrent_calls_have_the_same_answer() {
    let workspace = Workspace::with_toolsets(&["data"]);
    let kitbag = workspace.kitbag();
    let arguments = || json!({ "text": "{\"a\":1}", "merge": { "a": 2 } });
    thread::scope(|scope| {
        let ask = || kitbag.call_in_test("patch_data", arguments());
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), "{\n  \"a\": 2\n}");
        }
    });
}
