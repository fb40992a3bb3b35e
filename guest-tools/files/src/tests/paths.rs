//! `make_dir`, `move_path` and `remove_path`.

use std::fs;
use std::os::unix::fs::symlink;

use kitbag_sdk::json;
use kitbag_sdk::serde_json::Value;

use super::Directory;

#[test]
fn directories_are_created_with_missing_parents() {
    let directory = Directory::new();
    directory.file("file", "");
    let make = |path: &str| directory.call("make_dir", json!({ "path": path }));
    assert_eq!(make("a/b/c"), "[created, with 2 others above it]\n");
    assert!(directory.path("a/b/c").is_dir());
    assert_eq!(make("a/d"), "[made]\n");
    assert_eq!(make("a"), "[exists already]\n");
    assert_eq!(make("file"), "error: `file` already exists and is not a directory");
    assert!(make("file/in").starts_with("error: `file/in` cannot be made: a part of the path"));
}

#[test]
fn moves_replace_files_only_with_consent() {
    let directory = Directory::new();
    directory.file("a", "1").file("b", "22").file("in/c", "");
    let call =
        |arguments: Value, answers: &str| directory.call_with("move_path", arguments, answers);
    assert_eq!(call(json!({ "path": "a", "to": "new/place/a" }), "{}"), "[moved]\n");
    assert_eq!(fs::read_to_string(directory.path("new/place/a")).unwrap(), "1");
    let onto = json!({ "path": "new/place/a", "to": "b" });
    assert_eq!(call(onto, "{}"), "error: `b` already exists (2 B); `overwrite` replaces it");
    let onto = json!({ "path": "new/place/a", "to": "b", "overwrite": true });
    assert_eq!(call(onto.clone(), "{}"), "question: Replace `b` (2 B) by `new/place/a` (1 B)?");
    assert_eq!(
        call(onto.clone(), r#"{"overwrite":false}"#),
        "error: the replacement was declined; nothing was changed"
    );
    assert_eq!(fs::read_to_string(directory.path("b")).unwrap(), "22");
    assert_eq!(call(onto, r#"{"overwrite":true}"#), "[moved]\n");
    assert_eq!(fs::read_to_string(directory.path("b")).unwrap(), "1");
    assert_eq!(
        call(json!({ "path": "b", "to": "in", "overwrite": true }), "{}"),
        "error: `in` is a directory; to move `b` into it, name `in/b`"
    );
    assert_eq!(
        call(json!({ "path": "in", "to": "in/deeper/in" }), "{}"),
        "error: `in` cannot be moved into itself"
    );
    assert!(!directory.path("in/deeper").exists());
    assert_eq!(call(json!({ "path": "in", "to": "out" }), "{}"), "[moved]\n");
    assert_eq!(call(json!({ "path": "gone", "to": "x" }), "{}"), "error: `gone` does not exist");
    assert_eq!(
        call(json!({ "path": ".", "to": "x" }), "{}"),
        "error: a path to move must end in a name, not in `.` or `/`"
    );
}

#[test]
fn paths_are_removed_only_with_consent() {
    let directory = Directory::new();
    directory.file("a", "1").file("in/b", "22").file("in/deep/c", "333");
    symlink("in", directory.path("link")).unwrap();
    let call =
        |arguments: Value, answers: &str| directory.call_with("remove_path", arguments, answers);
    let (yes, no) = (r#"{"remove":true}"#, r#"{"remove":false}"#);
    let path = |path: &str| json!({ "path": path });
    assert_eq!(call(path("a"), "{}"), "question: Remove `a` (1 B)?");
    assert_eq!(call(path("a"), no), "error: the removal was declined; nothing was changed");
    assert_eq!(call(path("a"), yes), "[removed: 1 B]\n");
    assert_eq!(call(path("link/"), yes), "[removed: a link; its target stays]\n");
    assert!(directory.path("in/b").exists());
    assert_eq!(
        call(path("in"), yes),
        "error: `in` is a directory with 3 entries, 5 B; `recursive` removes it with all of that"
    );
    let all = json!({ "path": "in", "recursive": true });
    assert_eq!(call(all.clone(), "{}"), "question: Remove `in` (a directory with 3 entries, 5 B)?");
    assert_eq!(call(all, yes), "[removed: a directory with 3 entries, 5 B]\n");
    assert_eq!(fs::read_dir(directory.0.path()).unwrap().count(), 0);
    directory.file("repository/.git/HEAD", "");
    assert_eq!(
        call(json!({ "path": "repository", "recursive": true }), yes),
        "error: `repository` contains `repository/.git`, which tools may not remove"
    );
    assert!(call(path("."), yes).starts_with("error: `.` is the working directory"));
    assert_eq!(call(path("gone"), yes), "error: `gone` does not exist");
}

#[test]
fn refused_changes_do_not_ask_for_consent() {
    let directory = Directory::new();
    directory.file(".git/HEAD", "").file("a", "1");
    let check = |tool: &str, arguments: Value, expected: &str| {
        assert_eq!(directory.call(tool, arguments), expected);
    };
    let sealed = "error: `.git/HEAD` cannot be removed: tools may not change `.git`";
    check("remove_path", json!({ "path": ".git/HEAD" }), sealed);
    check(
        "move_path",
        json!({ "path": "a", "to": ".git/HEAD", "overwrite": true }),
        "error: `.git/HEAD` cannot be written: tools may not change `.git`",
    );
    check(
        "move_path",
        json!({ "path": ".git/HEAD", "to": "a", "overwrite": true }),
        "error: `.git/HEAD` cannot be moved: tools may not change `.git`",
    );
    check(
        "apply_patch",
        json!({ "patch": "*** Begin Patch\n*** Delete File: gone\n*** End Patch" }),
        "error: `gone` does not exist\nNothing was changed.",
    );
    check(
        "apply_patch",
        json!({ "patch": "*** Begin Patch\n*** Delete File: .git/HEAD\n*** End Patch" }),
        "error: `.git/HEAD` cannot be removed: tools may not change `.git`\nNothing was changed.",
    );
}
