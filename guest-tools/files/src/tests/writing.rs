//! `write_file` and `edit_file`.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Barrier;

use kitbag_sdk::json;
use kitbag_sdk::serde_json::Value;
use proptest::prelude::*;

use super::Directory;
use crate::file::digest;

fn edit(directory: &Directory, path: &str, edits: Value) -> String {
    directory.call("edit_file", json!({ "path": path, "edits": edits }))
}

/// Returns the names in a directory.
fn names(directory: &Directory) -> Vec<String> {
    let entries = fs::read_dir(directory.0.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn written_files_are_answered_with_a_diff() {
    let directory = Directory::new();
    let write = |arguments: Value| directory.call("write_file", arguments);
    assert_eq!(
        write(json!({ "path": "new/deep/a", "content": "1\n2\n" })),
        format!("[new file, 2 lines, digest {}]\n", digest(b"1\n2\n"))
    );
    assert_eq!(
        write(json!({ "path": "new/deep/a", "content": "1\n3\n" })),
        format!("@@ -1,2 +1,2 @@\n 1\n-2\n+3\n[digest {}]\n", digest(b"1\n3\n"))
    );
    assert_eq!(
        write(json!({ "path": "new/deep/a", "content": "4", "append": true })),
        format!(
            "@@ -1,2 +1,3 @@\n 1\n 3\n+4\n\\ No newline at end of file\n[digest {}]\n",
            digest(b"1\n3\n4")
        )
    );
    let unchanged = write(json!({ "path": "new/deep/a", "content": "1\n3\n4" }));
    assert_eq!(unchanged, format!("[unchanged, digest {}]\n", digest(b"1\n3\n4")));
    let dry = write(json!({ "path": "b", "content": "x", "dry_run": true }));
    assert!(dry.starts_with("[dry run: nothing was changed]\n[new file"), "{dry}");
    assert_eq!(names(&directory), ["new"]);
    assert_eq!(
        write(json!({ "path": "new", "content": "" })),
        "error: `new` is a directory, not a file"
    );
}

#[test]
fn files_changed_since_reading_are_not_overwritten() {
    let directory = Directory::new();
    directory.file("a", "1\n");
    let write = |expect: &str| {
        directory.call("write_file", json!({ "path": "a", "content": "2\n", "expect": expect }))
    };
    assert_eq!(
        write(&digest(b"0\n")),
        format!(
            "error: `a` has changed: its digest is `{}`, not `{}`; read it again",
            digest(b"1\n"),
            digest(b"0\n")
        )
    );
    assert_eq!(
        write("abc"),
        "error: `expect` is `abc`, which is not the digest of a file; `read_file` returns it"
    );
    assert!(write(&digest(b"1\n")).starts_with("@@"));
    let missing = json!({ "path": "b", "content": "", "expect": digest(b"1\n") });
    assert_eq!(
        directory.call("write_file", missing),
        "error: `b` does not exist, but `expect` has a digest"
    );
}

#[test]
fn encoding_line_endings_and_the_final_newline_are_kept() {
    let directory = Directory::new();
    let check = |before: &[u8], old: &str, new: &str, after: &[u8]| {
        directory.file("a", before);
        let answer = edit(&directory, "a", json!([{ "old_text": old, "new_text": new }]));
        assert!(answer.starts_with("@@"), "{answer}");
        assert_eq!(fs::read(directory.path("a")).unwrap(), after, "{answer}");
    };
    check(b"a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\nc\r\n");
    check(b"a\r\nb\nc", "b", "x\ny", b"a\r\nx\ny\nc");
    check(b"a\r\nb\r\nc\nd\n", "a\nb\n", "b\n", b"b\r\nc\nd\n");
    check(b"a\nb", "b", "c", b"a\nc");
    check(b"a\nb\n", "b\n", "b", b"a\nb");
    check(b"caf\xe9\n", "caf\u{e9}", "th\u{e9}", b"th\xe9\n");
    check(b"\xff\xfea\0\n\0", "a", "b\u{20ac}", b"\xff\xfeb\0\xac\x20\n\0");
    check(b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n");
    directory.file("a", b"caf\xe9\n");
    assert_eq!(
        edit(&directory, "a", json!([{ "old_text": "caf", "new_text": "\u{2192}" }])),
        "error: `a` is Latin-1, which does not have `\u{2192}`; `write_file` can write the whole \
         file in UTF-8"
    );
    let write = |content: &str| {
        directory.call("write_file", json!({ "path": "a", "content": content }));
        fs::read(directory.path("a")).unwrap()
    };
    assert_eq!(write("\u{2192}"), "\u{2192}".as_bytes());
    directory.file("a", b"a\r\nb\r\n");
    assert_eq!(write("x\ny\n"), b"x\r\ny\r\n");
    assert_eq!(write("x\r\ny\n"), b"x\r\ny\n");
}

#[test]
fn several_edits_are_made_in_order_or_none() {
    let directory = Directory::new();
    directory.file("a", "one\ntwo\nthree\n");
    let answer = edit(
        &directory,
        "a",
        json!([
            { "old_text": "one", "new_text": "1" },
            { "old_text": "1\ntwo", "new_text": "1\n2" },
        ]),
    );
    let after = "1\n2\nthree\n";
    assert_eq!(
        answer,
        format!(
            "@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n three\n[digest {}]\n",
            digest(after.as_bytes())
        )
    );
    let answer = edit(
        &directory,
        "a",
        json!([
            { "old_text": "1", "new_text": "x" },
            { "old_text": "nothing at all", "new_text": "y" },
        ]),
    );
    assert_eq!(
        answer,
        "error: `/edits/1`: `old_text` is not in the file, nor is similar text; read the file \
         again\nNothing was changed."
    );
    assert_eq!(fs::read_to_string(directory.path("a")).unwrap(), after);
    directory.file("a", "x x x\n");
    edit(&directory, "a", json!([{ "old_text": "x", "new_text": "xx", "all": true }]));
    assert_eq!(fs::read_to_string(directory.path("a")).unwrap(), "xx xx xx\n");
}

#[test]
fn links_are_kept_and_their_targets_changed() {
    let directory = Directory::new();
    directory.file("in/a", "1\n");
    symlink("in/a", directory.path("link")).unwrap();
    symlink("link", directory.path("second")).unwrap();
    assert!(
        edit(&directory, "second", json!([{ "old_text": "1", "new_text": "2" }])).contains("+2")
    );
    assert_eq!(fs::read_to_string(directory.path("in/a")).unwrap(), "2\n");
    assert!(directory.path("link").is_symlink());
    assert_eq!(names(&directory), ["in", "link", "second"]);
    assert_eq!(fs::read_dir(directory.path("in")).unwrap().count(), 1);
}

#[test]
fn concurrent_calls_on_a_file_lose_no_change() {
    const CALLS: usize = 8;
    const EDITS: usize = 5;
    let directory = Directory::new();
    directory.file("a", "");
    let start = Barrier::new(CALLS);
    std::thread::scope(|scope| {
        for call in 0..CALLS {
            let (directory, start) = (&directory, &start);
            scope.spawn(move || {
                start.wait();
                for number in 0..EDITS {
                    let line = format!("{call} {number}\n");
                    let arguments = json!({ "path": "a", "content": line, "append": true });
                    let answer = directory.call("write_file", arguments);
                    assert!(!answer.starts_with("error"), "{answer}");
                }
            });
        }
    });
    let content = fs::read_to_string(directory.path("a")).unwrap();
    let mut lines: Vec<_> = content.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), CALLS * EDITS, "{content}");
    assert_eq!(names(&directory), ["a"]);
}

#[test]
fn leftovers_of_killed_calls_are_removed() {
    let directory = Directory::new();
    let name = |purpose, of: &str| crate::leftover::temporary_name(purpose, of);
    let other = name(crate::leftover::Purpose::Replace, "other");
    let old = format!(".kitbag-old-{}-10-1", digest(b"other"));
    for name in [
        name(crate::leftover::Purpose::Replace, "a"),
        name(crate::leftover::Purpose::Create, "a"),
        old,
        other.clone(),
        ".kitbag-lock-x".into(),
        crate::leftover::lock_name("a"),
    ] {
        directory.file(&name, "rest");
    }
    // The lock is taken over after a while.
    directory.call("write_file", json!({ "path": "a", "content": "1\n" }));
    assert_eq!(names(&directory), [".kitbag-lock-x", &*other, "a"]);
    assert_eq!(directory.call("list_dir", json!({})), "a\n");
}

#[test]
fn invalid_bytes_of_utf8_files_are_kept() {
    let directory = Directory::new();
    directory.file("a", b"na\xc3\xafve \xff\nlast\n");
    let answer = edit(&directory, "a", json!([{ "old_text": "last", "new_text": "l\u{e4}st" }]));
    let after = b"na\xc3\xafve \xff\nl\xc3\xa4st\n";
    assert_eq!(fs::read(directory.path("a")).unwrap(), after);
    assert_eq!(
        answer,
        format!(
            "@@ -1,2 +1,2 @@\n na\u{ef}ve \u{10f7ff}\n-last\n+l\u{e4}st\n[UTF-8 with invalid bytes \
             (0xff is U+10F7FF), digest {}]\n",
            digest(after)
        )
    );
    // The character that represents the byte in an answer also represents it in an edit.
    edit(&directory, "a", json!([{ "old_text": "ve \u{10f7ff}", "new_text": "\u{10f7ff}!" }]));
    assert_eq!(fs::read(directory.path("a")).unwrap(), b"na\xc3\xaf\xff!\nl\xc3\xa4st\n");
    let patch = "--- a/a\n+++ b/a\n@@ -2 +2 @@\n-l\u{e4}st\n+\u{20ac}\n";
    let answer = directory.call("apply_patch", json!({ "patch": patch }));
    assert!(answer.starts_with("a: UTF-8 with invalid bytes"), "{answer}");
    assert_eq!(fs::read(directory.path("a")).unwrap(), b"na\xc3\xaf\xff!\n\xe2\x82\xac\n");
}

#[test]
fn assumed_encodings_are_reported() {
    let directory = Directory::new();
    directory.file("a", b"caf\xe9\n");
    let answer = edit(&directory, "a", json!([{ "old_text": "caf", "new_text": "th" }]));
    assert!(answer.contains("\n[Latin-1, digest "), "{answer}");
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-th\u{e9}\n+\u{e9}\n";
    let answer = directory.call("apply_patch", json!({ "patch": patch }));
    assert!(answer.starts_with("a: Latin-1, digest "), "{answer}");
    assert_eq!(fs::read(directory.path("a")).unwrap(), b"\xe9\n");
}

#[test]
fn changes_of_hard_linked_files_are_reported() {
    let directory = Directory::new();
    directory.file("a", "1\n");
    fs::hard_link(directory.path("a"), directory.path("b")).unwrap();
    let answer = edit(&directory, "a", json!([{ "old_text": "1", "new_text": "2" }]));
    let note = "[it had another name (a hard link), which still has the old content]\n";
    assert!(answer.ends_with(note), "{answer}");
    assert_eq!(fs::read_to_string(directory.path("b")).unwrap(), "1\n");
    let answer = edit(&directory, "a", json!([{ "old_text": "2", "new_text": "3" }]));
    assert!(!answer.contains("another name"), "{answer}");
    fs::hard_link(directory.path("a"), directory.path("c")).unwrap();
    fs::hard_link(directory.path("a"), directory.path("d")).unwrap();
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-3\n+4\n";
    let answer = directory.call("apply_patch", json!({ "patch": patch }));
    let note = "[it had 2 other names (hard links), which still have the old content]\n";
    assert!(answer.ends_with(note), "{answer}");
}

#[test]
fn directory_paths_are_not_file_paths() {
    let directory = Directory::new();
    directory.file("a", "1\n");
    let check = |tool: &str, arguments: Value, expected: &str| {
        assert_eq!(directory.call(tool, arguments), expected);
    };
    let error = |path: &str| {
        format!("error: `{path}` ends with `/`, so it is the path of a directory, not of a file")
    };
    check("write_file", json!({ "path": "d/", "content": "x" }), &error("d/"));
    let edits = json!([{ "old_text": "1", "new_text": "2" }]);
    check("edit_file", json!({ "path": "a/", "edits": edits }), &error("a/"));
    let patch = "*** Begin Patch\n*** Add File: d/\n+x\n*** End Patch";
    let expected = format!("{}\nNothing was changed.", error("d/"));
    check("apply_patch", json!({ "patch": patch }), &expected);
    check(
        "move_path",
        json!({ "path": "a", "to": "d/" }),
        "error: `d/` does not exist; `to` is the whole new path of the file",
    );
    assert_eq!(names(&directory), ["a"]);
}

#[test]
fn refused_calls_leave_no_directory() {
    let directory = Directory::new();
    directory.file("a", "1\n");
    let long = "n".repeat(300);
    let patch = format!(
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n--- /dev/null\n+++ b/x/y/{long}/z\n@@ -0,0 +1 @@\n+1\n"
    );
    for (tool, arguments) in [
        ("make_dir", json!({ "path": format!("x/y/{long}") })),
        ("write_file", json!({ "path": format!("x/y/{long}/z"), "content": "" })),
        ("move_path", json!({ "path": "a", "to": format!("x/y/{long}") })),
        ("move_path", json!({ "path": "a", "to": format!("x/y/{long}/z") })),
        ("apply_patch", json!({ "patch": patch })),
    ] {
        let answer = directory.call(tool, arguments);
        assert!(answer.contains("the name is too long"), "{answer}");
        assert_eq!(names(&directory), ["a"], "{tool}");
    }
}

/// Pieces of files: characters of one or more bytes, both line endings, invalid bytes.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let pieces =
        [&b"a"[..], "\u{e9}".as_bytes(), "\u{65e5}".as_bytes(), b"\n", b"\r\n", b"\xff", b"\xc3"];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..12)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_keep_the_bytes_around_the_passage(before in pieces(), after in pieces()) {
        let directory = Directory::new();
        directory.file("a", [&before, &b"needle"[..], &after].concat());
        let answer =
            edit(&directory, "a", json!([{ "old_text": "needle", "new_text": "\u{e4}" }]));
        prop_assert!(!answer.starts_with("error"), "{}", answer);
        let found = fs::read(directory.path("a")).unwrap();
        prop_assert!(found.starts_with(&before) && found.ends_with(&after), "{:?}", found);
        let new = &found[before.len()..found.len() - after.len()];
        let is_latin1 = answer.contains("Latin-1");
        prop_assert_eq!(new, if is_latin1 { &b"\xe4"[..] } else { "\u{e4}".as_bytes() });
    }
}
