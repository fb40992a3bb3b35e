//! `patch_data`, through the real binary. Patches in detail are tested in
//! `guest-tools/data`.

use std::fs;
use std::thread;

use serde_json::json;

use crate::support::{CallInTest, Workspace};

#[test]
fn a_document_is_answered_with_the_change_and_no_file_is_written() {
    let workspace = Workspace::with_toolsets(&["data"]);
    let document = "{\"n\":12345678901234567890123,\"ä\":[1]}";
    let file = workspace.file("a.json", document);
    let patch = "patch=[{\"op\":\"add\",\"path\":\"/ä/-\",\"value\":2}]";
    let run = workspace.run(&["run", "patch_data", "path=a.json", patch]);
    let expected = "{\n  \"n\": 12345678901234567890123,\n  \"ä\": [\n    1,\n    2\n  ]\n}";
    assert_eq!(run.stdout.trim_end(), expected, "{}", run.stderr);
    let run = workspace.run(&["run", "patch_data", "path=a.json", "merge={\"n\":null}"]);
    assert_eq!(run.stdout.trim_end(), "{\n  \"ä\": [\n    1\n  ]\n}", "{}", run.stderr);
    assert_eq!(fs::read_to_string(file).unwrap(), document);
}

#[test]
fn an_operation_that_fails_is_named_and_nothing_is_answered() {
    let workspace = Workspace::with_toolsets(&["data"]);
    workspace.file("empty.json", "");
    let check = |arguments: &[&str], expected: &str| {
        let run = workspace.run(&[&["run", "patch_data"], arguments].concat());
        assert!(run.code == 1 && run.stderr.contains(expected), "{}{}", run.stdout, run.stderr);
        assert_eq!(run.stdout, "");
    };
    let patch = "patch=[{\"op\":\"add\",\"path\":\"/a\",\"value\":1},{\"op\":\"remove\",\"path\":\"/b\"}]";
    check(&["text={}", patch], "`/patch/1` failed: what `path` names does not exist");
    check(&["path=empty.json", "merge={}"], "`empty.json` is not JSON");
    let deep = format!("text={}", "[".repeat(60_000));
    check(&[&deep, "merge={}"], "recursion limit exceeded");
}

#[test]
fn calls_at_once_have_the_same_answer() {
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
