//! `apply_patch` and `edit_file`, compared with a plain model and with case files.

use std::fs;

use kitbag_sdk::json;
use proptest::prelude::*;
use similar::TextDiff;

use super::Directory;

/// Runs calls on one directory in order: a case may use the files of the previous cases.
fn cases(name: &str) {
    let directory = Directory::new();
    let path = format!("{}/cases/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    kitbag_cases::check(path, |tool, arguments| {
        let arguments = kitbag_sdk::serde_json::from_str(arguments).unwrap();
        let answer = directory.call(tool, arguments);
        match answer.strip_prefix("error: ") {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer),
        }
    });
}

#[test]
fn edits_match_the_cases() {
    cases("edit");
}

#[test]
fn patches_match_the_cases() {
    cases("patch");
}

#[test]
fn characters_that_look_alike_are_found_and_kept() {
    cases("alike");
}

#[test]
fn patches_of_several_files_are_atomic() {
    let directory = Directory::new();
    directory.file("a", "1\n").file("b", "2\n");
    let patch =
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-3\n+two\n";
    let answer = directory.call("apply_patch", json!({ "patch": patch }));
    assert!(answer.starts_with("error: `b`: hunk 1 is not in the file"), "{answer}");
    assert_eq!(fs::read_to_string(directory.path("a")).unwrap(), "1\n");
    // The write error occurs late, so earlier writes are reverted.
    directory.file("b", "3\n").file("c", "");
    let late = format!("{patch}--- /dev/null\n+++ b/c/d\n@@ -0,0 +1 @@\n+x\n");
    let answer = directory.call("apply_patch", json!({ "patch": late }));
    assert!(answer.starts_with("error: `c/d`"), "{answer}");
    assert_eq!(fs::read_to_string(directory.path("a")).unwrap(), "1\n");
    let answer = directory.call("apply_patch", json!({ "patch": patch }));
    assert!(answer.contains("+two"), "{answer}");
    assert_eq!(fs::read_to_string(directory.path("b")).unwrap(), "two\n");
}

#[test]
fn reverse_patches_undo_patches() {
    let directory = Directory::new();
    let (old, new) = ("a\nb\nc\nd\ne\n", "a\nB\nc\nd\ne\nf\n");
    directory.file("a", old);
    for (from, to) in [(old, new), (new, old)] {
        let diff = TextDiff::from_lines(from, to).unified_diff().header("a/a", "b/a").to_string();
        directory.call("apply_patch", json!({ "patch": diff }));
        assert_eq!(fs::read_to_string(directory.path("a")).unwrap(), to);
    }
}

/// Lines of few letters, so that some are equal, with or without a final newline.
fn text() -> impl Strategy<Value = String> {
    let lines = proptest::collection::vec("[ab\\-+ @é]{0,3}", 0..30);
    (lines, any::<bool>()).prop_map(|(lines, ends)| {
        let text = lines.join("\n");
        if ends && !text.is_empty() { format!("{text}\n") } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn unified_diffs_turn_one_text_into_the_other(
        old in text(), new in text(), context in 0_usize..4, crlf in any::<bool>(),
    ) {
        prop_assume!(old != new && !old.is_empty() && !new.is_empty());
        let directory = Directory::new();
        let ends = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        directory.file("a", ends(&old));
        let diff = TextDiff::from_lines(&old, &new);
        let patch = diff.unified_diff().context_radius(context).header("a/a", "b/a").to_string();
        let answer = directory.call("apply_patch", json!({ "patch": patch }));
        prop_assert!(!answer.starts_with("error"), "{}\n{}", patch, answer);
        let found = fs::read_to_string(directory.path("a")).unwrap();
        // A text without newlines does not determine line endings.
        let expected = if old.contains('\n') { ends(&new) } else { new };
        prop_assert_eq!(found, expected, "{}", patch);
    }

    #[test]
    fn edits_replace_exactly_one_match(
        text in text(), at in 0_usize..60, length in 1_usize..12, new in "[ab\nxé]{0,4}",
        all in any::<bool>(),
    ) {
        let chars: Vec<char> = text.chars().collect();
        let old: String = chars.iter().skip(at).take(length).collect();
        prop_assume!(!old.is_empty() && old != new);
        let directory = Directory::new();
        directory.file("a", &text);
        let edits = json!([{ "old_text": old, "new_text": new, "all": all }]);
        let answer = directory.call("edit_file", json!({ "path": "a", "edits": edits }));
        let found = fs::read_to_string(directory.path("a")).unwrap();
        // The model: every position, compared letter by letter.
        let wanted: Vec<char> = old.chars().collect();
        let places = chars.windows(wanted.len()).filter(|it| *it == wanted).count();
        if all || places == 1 {
            let expected = text.replacen(&old, &new, if all { usize::MAX } else { 1 });
            prop_assert_eq!(found, expected, "{}", answer);
        } else {
            prop_assert!(answer.starts_with("error: `old_text` is in the file"), "{}", answer);
            prop_assert_eq!(found, text);
        }
    }
}
