//! `apply_patch` with the output of `git diff` for random trees, forward and in reverse.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kitbag_sdk::json;
use proptest::prelude::*;
use proptest::sample::select;

use super::Directory;

/// Relative paths and their content.
type Tree = BTreeMap<String, String>;

/// Names that git quotes, that look like git's prefixes, or that end with a space.
const NAMES: [&str; 12] = [
    "a.txt",
    "b.txt",
    "a/x",
    "b/x",
    "src/deep/a.txt",
    "with space.txt",
    "space at the end ",
    "\u{fc}ml\u{e4}ut.txt",
    "\u{65e5}\u{672c}/\u{8a9e}",
    "a \"quote\".txt",
    "tab\tname",
    "back\\slash",
];

/// Further options of git.
const OPTIONS: [&[&str]; 6] = [
    &[],
    &["--no-renames"],
    &["--no-prefix"],
    &["-c", "core.quotePath=false"],
    &["-c", "diff.mnemonicPrefix=true"],
    &["-U1"],
];

/// The number of trees, unless `PROPTEST_CASES` is set.
const CASES: u32 = 24;

/// Short lines, many of them equal, with uniform or mixed line endings.
fn text() -> impl Strategy<Value = String> {
    let line =
        (select(vec!["", "a", "b", "  a", "-- a", "++ b", "\u{e9}", "@@ -1 +1 @@"]), any::<bool>());
    (prop::collection::vec(line, 0..14), 0..3, any::<bool>()).prop_map(|(lines, ends, is_cut)| {
        let text: String = lines
            .iter()
            .map(|(line, crlf)| match (ends, crlf) {
                (0, _) | (2, false) => format!("{line}\n"),
                _ => format!("{line}\r\n"),
            })
            .collect();
        if is_cut { text.trim_end().to_owned() } else { text }
    })
}

/// A tree and its changes: changed, renamed, created and removed files.
fn trees() -> impl Strategy<Value = (Tree, Tree)> {
    let changed = (text(), text()).prop_map(|(old, new)| (Some(old), Some(new)));
    let inserted = (text(), text(), text()).prop_map(|(one, new, other)| {
        (Some(format!("{one}{other}")), Some(format!("{one}{new}{other}")))
    });
    let kept = text().prop_map(|text| (Some(text.clone()), Some(text)));
    let made = text().prop_map(|text| (None, Some(text)));
    let removed = text().prop_map(|text| (Some(text), None));
    let file = prop_oneof![changed, inserted, kept, made, removed];
    let files = prop::collection::btree_map(select(NAMES.to_vec()), file, 1..8);
    let moved = (text(), select(vec!["", "one more\n"])).prop_map(|(text, more)| {
        let long = format!("{text}\n{}", "the same line\n".repeat(20));
        (long.clone(), long + more)
    });
    (files, prop::option::of(moved)).prop_map(|(files, moved)| {
        let (mut old, mut new) = (Tree::new(), Tree::new());
        for (name, (before, after)) in files {
            old.extend(before.map(|text| (name.to_owned(), text)));
            new.extend(after.map(|text| (name.to_owned(), text)));
        }
        if let Some((before, after)) = moved {
            old.insert("moved/from \u{e9}".into(), before);
            new.insert("moved/to".into(), after);
        }
        (old, new)
    })
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let run = Command::new("git")
        .current_dir(directory)
        .args(["-c", "core.autocrlf=false", "-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

/// Writes the files of a tree and removes all others, except `.git`.
fn write(directory: &Path, tree: &Tree) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            _ if path.ends_with(".git") => {}
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
    for (name, content) in tree {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// Reads the files of a directory.
fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut directories = vec![PathBuf::from(root)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                tree.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    tree
}

/// Returns git's diff of two trees, and the reverse.
fn diffs(old: &Tree, new: &Tree, options: &[&str]) -> [String; 2] {
    let repository = tempfile::tempdir().unwrap();
    let root = repository.path();
    git(root, &["init", "--quiet"]);
    write(root, old);
    git(root, &["add", "--all"]);
    git(root, &["commit", "--quiet", "--allow-empty", "--message", "old"]);
    write(root, new);
    git(root, &["add", "--all"]);
    // Options of git itself precede the command.
    let (before, after) = options.split_at(if options.first() == Some(&"-c") { 2 } else { 0 });
    [&[][..], &["-R"]]
        .map(|reverse| git(root, &[before, &["diff", "--cached"], after, reverse].concat()))
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn git_diffs_are_applied_and_reverted(
        (old, new) in trees(), options in select(OPTIONS.to_vec()),
    ) {
        prop_assume!(old != new);
        let [there, back] = diffs(&old, &new, options);
        let directory = Directory::new();
        write(directory.0.path(), &old);
        for (patch, expected) in [(there, &new), (back, &old)] {
            let arguments = json!({ "patch": patch });
            let answer = directory.call_with("apply_patch", arguments, r#"{"remove":true}"#);
            prop_assert!(!answer.starts_with("error"), "{}\n{}", patch, answer);
            prop_assert_eq!(&read(directory.0.path()), expected, "{}\n{}", patch, answer);
        }
    }
}
