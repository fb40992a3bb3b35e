//! Tests of the tools on real trees, compared with ripgrep: with its recorded output in
//! `recorded/`, and with a simple combination of its libraries.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use kitbag_sdk::serde_json::{self, Value, json};
use kitbag_sdk::{Call, Stop, Tool};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::Search;

/// Creates a tree of these files. Each character of a name or content is one byte.
fn tree(files: &BTreeMap<String, String>) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bytes = |text: &str| text.chars().map(|byte| byte as u8).collect::<Vec<_>>();
    for (path, content) in files {
        let path = directory.path().join(String::from_utf8(bytes(path)).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes(content)).unwrap();
    }
    directory
}

/// Returns the answer of a call, or its error.
fn call(root: &Path, tool: &str, arguments: &Value) -> Result<String, String> {
    let call = Call::new(tool, root.to_str().unwrap(), arguments.to_string(), "{}");
    Search::run(&call, Value::Null).map_err(|stop| match stop {
        Stop::Error(error) => error.message,
        Stop::Question(question) => question.text,
    })
}

/// Returns the lines of an answer by name, without the notes below them.
fn sorted(answer: &str) -> Vec<String> {
    let mut lines: Vec<_> = answer.lines().map(String::from).collect();
    let is_note = |line: &str| {
        line.starts_with("no matches") || line.starts_with("nothing found") || line.starts_with('[')
    };
    lines.retain(|line| !is_note(line));
    lines.sort();
    lines
}

fn recorded_tree() -> TempDir {
    tree(&serde_json::from_str(include_str!("../recorded/tree.json")).unwrap())
}

#[test]
fn answers_match_recorded_ripgrep_output() {
    let directory = recorded_tree();
    let mut checked = 0;
    for case in include_str!("../recorded/cases.txt").split("\n\n").skip(1) {
        let (arguments, expected) = case.split_once('\n').unwrap_or((case, ""));
        let mut given: Value = serde_json::from_str(arguments).unwrap();
        let tool = match given.get("pattern") {
            Some(_) => {
                given["show"] = json!("counts");
                "search_files"
            }
            None => "find_files",
        };
        let answer = call(directory.path(), tool, &given).unwrap();
        assert_eq!(sorted(&answer), sorted(expected), "{arguments}");
        checked += 1;
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn answers_match_the_cases() {
    let directory = recorded_tree();
    let ask = |tool: &str, arguments: &str| {
        let answer = call(directory.path(), tool, &serde_json::from_str(arguments).unwrap());
        answer.map_err(|error| error.replace(directory.path().to_str().unwrap(), "/workspace"))
    };
    kitbag_cases::check(concat!(env!("CARGO_MANIFEST_DIR"), "/cases/search_files.txt"), ask);
    kitbag_cases::check(concat!(env!("CARGO_MANIFEST_DIR"), "/cases/find_files.txt"), ask);
}

#[test]
fn the_newest_comes_first_and_the_oldest_is_omitted() {
    let directory = tempfile::tempdir().unwrap();
    for age in [3, 1, 4, 0, 2] {
        let path = directory.path().join(format!("{age}.txt"));
        fs::write(&path, "match\nmatch\n").unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age);
        fs::File::open(path).unwrap().set_modified(time).unwrap();
    }
    let check = |tool: &str, arguments: Value, expected: &str| {
        assert_eq!(call(directory.path(), tool, &arguments).unwrap(), expected);
    };
    check(
        "find_files",
        json!({ "newest": true, "limit": 2 }),
        "0.txt\n1.txt\n[omitted: 3 paths (`limit`)]",
    );
    check(
        "search_files",
        json!({ "pattern": "match", "newest": true, "limit": 3 }),
        "0.txt\n1:match\n2:match\n\n1.txt\n1:match\n[1 more]\n\n\
         [omitted: 1 match in 1 file above (`per_file`), 6 matches in 3 more files (`limit`)]",
    );
    check(
        "search_files",
        json!({ "pattern": "match", "newest": true, "limit": 2, "show": "files" }),
        "0.txt\n1.txt\n\n[omitted: 3 more files (`limit`)]",
    );
}

#[test]
fn counting_stops_at_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    for file in 0..4 {
        fs::write(directory.path().join(format!("{file}.txt")), "match\n".repeat(6_000)).unwrap();
    }
    let answer = call(directory.path(), "search_files", &json!({ "pattern": "match" })).unwrap();
    let end = "[omitted: at least 5980 matches in 1 file above (`per_file`), \
               4020 matches in 1 more file (`limit`)]";
    let arguments = json!({ "pattern": "match", "limit": 20 });
    let cut = call(directory.path(), "search_files", &arguments).unwrap();
    assert!(cut.ends_with(end), "{cut}");
    assert!(answer.len() < 1_000, "{answer}");
}

#[test]
fn globs_and_types_restrict_and_reach_hidden_files() {
    let files =
        [".git/config", ".github/ci.yml", ".env.example", "a/.b/c.yml", "d.yml", "out/e.yml"];
    let mut files: BTreeMap<_, _> = files.map(|path| (path.to_owned(), "q\n".to_owned())).into();
    files.insert(".gitignore".into(), "out\n.env.example\n".into());
    let directory = tree(&files);
    let check = |arguments: Value, expected: &[&str]| {
        let found = call(directory.path(), "find_files", &arguments).unwrap();
        assert_eq!(sorted(&found), expected, "{arguments}");
    };
    check(json!({ "globs": ["*"] }), &["d.yml"]);
    check(json!({ "globs": ["**/*.yml"] }), &["d.yml"]);
    check(json!({ "types": ["yaml"] }), &["d.yml"]);
    check(json!({ "globs": ["*.yml"], "types": ["rust"] }), &[]);
    check(json!({ "globs": [".github/**"] }), &[".github/ci.yml"]);
    check(json!({ "globs": ["a/.*/*.yml"] }), &["a/.b/c.yml"]);
    check(json!({ "globs": [".git*"] }), &[".gitignore"]);
    check(
        json!({ "globs": ["*.yml"], "hidden": true }),
        &[".github/ci.yml", "a/.b/c.yml", "d.yml"],
    );
    check(json!({ "globs": ["out/**"] }), &[]);
    check(json!({ "globs": ["out/**"], "ignored": true }), &["out/e.yml"]);
    check(json!({ "globs": [".env*"] }), &[]);
    check(json!({ "globs": [".env*"], "ignored": true }), &[".env.example"]);
    check(json!({ "globs": ["!*.yml", ".github/**"], "hidden": true }), &[".github/ci.yml"]);
}

#[test]
fn other_encodings_are_searched_as_in_read_file() {
    let directory = tempfile::tempdir().unwrap();
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    for (name, content) in [
        ("invalid", b"na\xc3\xafve \xff caf\xc3\xa9\n".to_vec()),
        ("latin", b"a caf\xe9\r\n".to_vec()),
        ("long", [b"\xe9 ".repeat(50_000), b"caf\xe9".to_vec()].concat()),
        ("mark", [vec![0xff, 0xfe], utf16("un caf\u{e9}\r\n")].concat()),
        ("no mark", utf16("un caf\u{e9}\r\nand more text of the same\r\n")),
        ("utf8", "\u{e4} caf\u{e9}\r\n".into()),
        ("binary", b"caf\xe9\0\n".to_vec()),
    ] {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let arguments = json!({ "pattern": "caf\u{e9}$", "show": "files" });
    let found = call(directory.path(), "search_files", &arguments).unwrap();
    let expected = "invalid\nlatin\nlong\nmark\nno mark\nutf8\n[`invalid` is UTF-8 with invalid bytes \
                    (0xff is U+10F7FF); `latin` is Latin-1; `long` is Latin-1; `mark` is UTF-16 LE; \
                    `no mark` is UTF-16 LE]\n[passed over 1 binary file]";
    assert_eq!(found, expected);
    let arguments = json!({ "pattern": "caf", "path": "no mark" });
    let found = call(directory.path(), "search_files", &arguments).unwrap();
    assert_eq!(found, "no mark\n1:un caf\u{e9}\n[`no mark` is UTF-16 LE]");
    for number in 0..7 {
        fs::write(directory.path().join(format!("more{number}")), b"th\xe9\n").unwrap();
    }
    let found = call(directory.path(), "search_files", &json!({ "pattern": "th\u{e9}" })).unwrap();
    let end = "\n[`more0` is Latin-1; `more1` is Latin-1; `more2` is Latin-1; `more3` is Latin-1; \
               `more4` is Latin-1; 2 more are not UTF-8]";
    assert!(found.contains(end), "{found}");
}

#[test]
fn lines_with_crlf_are_shown_without_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), "one needle\r\n\r\nneedle\r\nlast").unwrap();
    let check = |pattern: &str, expected: &str| {
        let found = call(directory.path(), "search_files", &json!({ "pattern": pattern }));
        assert_eq!(found.unwrap(), expected, "{pattern}");
    };
    check("needle$", "a\n1:one needle\n3:needle");
    check("^needle$", "a\n3:needle");
    check("^$", "a\n2:");
    check("needle.$", "no matches in 1 file");
    check("needle\\n\\nneedle$", "a\n1:one needle\n2-\n3-needle");
    check("needle\\r?\\n\\r?\\nneedle$", "a\n1:one needle\n2-\n3-needle");
    check("e\\r\\n", "a\n1:one needle\n3:needle");
}

#[test]
fn a_long_line_is_cut_around_the_match() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("{}needle{}\n", "ä".repeat(100_000), "ö".repeat(100_000));
    fs::write(directory.path().join("a.txt"), line).unwrap();
    let answer = call(directory.path(), "search_files", &json!({ "pattern": "needle" })).unwrap();
    assert!(answer.contains("ääneedleöö") && answer.len() < 400, "{answer}");
    assert!(answer.ends_with("ö… [400006 bytes]"), "{answer}");
}

#[test]
fn links_are_skipped_and_invalid_names_are_counted() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("o.txt"), "match").unwrap();
    std::os::unix::fs::symlink(outside.path(), directory.path().join("link")).unwrap();
    std::os::unix::fs::symlink(".", directory.path().join("round")).unwrap();
    fs::write(directory.path().join("a.txt"), "match").unwrap();
    fs::write(directory.path().join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "match").unwrap();
    let check = |tool: &str, arguments: Value, expected: &str| {
        assert_eq!(call(directory.path(), tool, &arguments).unwrap(), expected);
    };
    let end = "[passed over 1 name that is not UTF-8]";
    check("search_files", json!({ "pattern": "match" }), &format!("a.txt\n1:match\n{end}"));
    check("find_files", json!({}), &format!("a.txt\n{end}"));
    check("find_files", json!({ "kind": "any" }), &format!("a.txt\nlink\nround\n{end}"));
}

/// Rules of ignore files that may match the names below.
const RULES: [&str; 14] = [
    "a", "*.b", "!a", "!*.b", "/a", "c/", "a/c", "**/c", "c/**", "!/c/", "*", "!*/", "?.b",
    "[ac].b",
];

/// A random tree with ignore files.
fn trees() -> impl Strategy<Value = BTreeMap<String, String>> {
    let directory = prop::sample::select(vec!["", "a/", "c/", "a/c/", "c/a/", ".d/", "a/.d/"]);
    let name = prop::sample::select(vec!["a.b", "c.b", "x", ".h", "a.t", "c"]);
    let content = prop::sample::select(vec!["", "q\n", "q\nx q\n", "z\n", "q\0\n", "Q"]);
    let file = (directory.clone(), name, content.prop_map(String::from));
    let kind =
        prop::sample::select(vec![".gitignore", ".ignore", ".rgignore", ".git/info/exclude"]);
    let rules = prop::collection::vec(prop::sample::select(RULES.to_vec()), 1..4);
    let ignores = (directory, kind, rules.prop_map(|rules| rules.join("\n")));
    (prop::collection::vec(file, 1..20), prop::collection::vec(ignores, 0..5)).prop_map(
        |(files, ignores)| {
            let all = files.into_iter().chain(ignores);
            // Unlike the tools, ripgrep reads no `.gitignore` outside of a repository.
            let mut tree = BTreeMap::from([(".git/HEAD".to_owned(), String::new())]);
            for (directory, name, content) in all {
                let path = format!("{directory}{name}");
                // A name is either a file or a directory.
                let clashes = tree.keys().any(|other| {
                    other.starts_with(&format!("{path}/")) || path.starts_with(&format!("{other}/"))
                });
                if !clashes {
                    tree.insert(path, content);
                }
            }
            tree
        },
    )
}

/// Returns the files of ripgrep's own walk, in its order.
fn walked(root: &Path, hidden: bool, ignored: bool) -> Vec<String> {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(!hidden).ignore(!ignored).git_ignore(!ignored).git_exclude(!ignored);
    builder.git_global(false).parents(false);
    if !ignored {
        builder.add_custom_ignore_filename(".rgignore");
    }
    let files = builder.build().map(Result::unwrap).filter(|it| it.file_type().unwrap().is_file());
    let mut files: Vec<_> = files
        .map(|it| it.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn trees_are_walked_and_searched_like_ripgrep(
        files in trees(),
        hidden: bool,
        ignored: bool,
        globs in prop::sample::select(vec![&[][..], &["*.b"], &["a/**", "!c.b"], &["!c/**"]]),
    ) {
        let directory = tree(&files);
        let mut arguments = json!({ "hidden": hidden, "ignored": ignored, "limit": 10_000 });
        arguments["globs"] = json!(globs);
        let found = call(directory.path(), "find_files", &arguments).unwrap();
        let mut builder = OverrideBuilder::new("");
        globs.iter().for_each(|glob| { builder.add(glob).unwrap(); });
        let globs = builder.build().unwrap();
        let mut expected = walked(directory.path(), hidden, ignored);
        expected.retain(|path| !globs.matched(path, false).is_ignore());
        prop_assert_eq!(&sorted(&found), &expected);

        let mut arguments = arguments;
        arguments["pattern"] = json!("q");
        arguments["show"] = json!("counts");
        let counted = call(directory.path(), "search_files", &arguments).unwrap();
        let matches = |path: &String| {
            let text = fs::read_to_string(directory.path().join(path)).unwrap();
            let lines = text.lines().filter(|line| line.to_lowercase().contains('q')).count();
            (lines > 0 && !text.contains('\0')).then(|| format!("{path}:{lines}"))
        };
        let mut expected: Vec<_> = expected.iter().filter_map(matches).collect();
        expected.sort();
        prop_assert_eq!(sorted(&counted), expected);
    }
}

/// A case from practice: a pattern over two lines, with any line endings.
#[test]
fn multiline_patterns_match_windows_line_endings() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("crlf"), "alpha\r\nbeta\r\n\r\ngamma\r\n").unwrap();
    fs::write(directory.path().join("lf"), "alpha\nbeta\n\ngamma\n").unwrap();
    fs::write(directory.path().join("one"), "alpha beta\n").unwrap();
    let check = |pattern: &str, literal: bool, expected: &str| {
        let arguments = json!({ "pattern": pattern, "literal": literal, "show": "files" });
        let found = call(directory.path(), "search_files", &arguments).unwrap();
        assert_eq!(found.replace('\n', " "), expected, "{pattern}");
    };
    let hint = "; lines are searched one by one, and classes such as `[^x]` match no line ending; \
                `\\n` or `(?s)` in the pattern spans lines";
    check("alpha\\nbeta", false, "crlf lf");
    check("alpha\nbeta", false, "crlf lf");
    check("alpha\nbeta", true, "crlf lf");
    check("alpha\r\nbeta", true, "crlf lf");
    check("alpha\\r\\nbeta", false, "crlf");
    check("alpha[\\n]beta", false, "crlf lf");
    check("alpha[,\\n]+beta", false, "crlf lf");
    check("(?x)alpha \\n beta", false, "crlf lf");
    check("alpha\\sbeta", false, "crlf lf one");
    check("alpha[\\s,]beta", false, "crlf lf one");
    check("alpha\\s+beta", false, "crlf lf one");
    check("beta\\s+gamma", false, "crlf lf");
    check("(?s)alpha.*gamma", false, "crlf lf");
    check("alpha[\\s\\S]*?beta", false, "crlf lf one");
    // Matches within a line are not extended.
    check("alpha.*beta", false, "one");
    check("a[^x]gamma", false, &format!("no matches in 3 files{hint}"));
    check("\\s+$", false, "no matches in 3 files");
    let lines = json!({ "pattern": "beta\\s+gamma", "path": "crlf" });
    let found = call(directory.path(), "search_files", &lines).unwrap();
    assert_eq!(found, "crlf\n2:beta\n3-\n4-gamma");
}

#[test]
fn long_matches_are_shown_partially() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), format!("begin\n{}end\n", "x\n".repeat(100))).unwrap();
    let arguments = json!({ "pattern": "(?s)begin.*end" });
    let found = call(directory.path(), "search_files", &arguments).unwrap();
    assert!(found.ends_with("\n40-x\n[the match has 62 more lines]"), "{found}");
}

#[test]
fn full_answers_name_the_limit_and_a_fix() {
    let directory = tempfile::tempdir().unwrap();
    for file in 0..9 {
        let text = format!("match {}\n", "x".repeat(200)).repeat(500);
        fs::write(directory.path().join(format!("{file}.txt")), text).unwrap();
    }
    let arguments = json!({ "pattern": "match", "limit": 100_000, "per_file": 100_000 });
    let found = call(directory.path(), "search_files", &arguments).unwrap();
    assert_eq!(
        found.rsplit('\n').next().unwrap(),
        "[omitted: 3000 matches in 6 more files (from 3.txt on: 256 KiB are shown, the limit; \
         narrow `path`, `globs` or `types`, or lower `per_file`)]"
    );
    let name = "n".repeat(240);
    for file in 0..1_200 {
        fs::write(directory.path().join(format!("{name}{file}")), "").unwrap();
    }
    for newest in [false, true] {
        let arguments = json!({ "limit": 100_000, "newest": newest });
        let found = call(directory.path(), "find_files", &arguments).unwrap();
        let end = " (256 KiB are shown, the limit; narrow `path`, `globs` or `types`)]";
        assert!(found.ends_with(end), "{}", &found[found.len() - 200..]);
    }
}

#[test]
fn lines_longer_than_memory_are_searched() {
    let directory = tempfile::tempdir().unwrap();
    let long = "x".repeat(9_000_000);
    fs::write(directory.path().join("a.json"), format!("first\n{long}needle{long}\nneedle\n"))
        .unwrap();
    let check = |arguments: Value, expected: &[&str]| {
        let found = call(directory.path(), "search_files", &arguments).unwrap();
        let lines: Vec<_> = found.lines().map(|line| line.replace('x', "")).collect();
        assert_eq!(lines, expected);
    };
    check(json!({ "pattern": "needle", "show": "counts" }), &["a.json:2"]);
    check(json!({ "pattern": "^needle" }), &["a.json", "3:needle"]);
    check(json!({ "pattern": "nothing" }), &["no matches in 1 file"]);
    let arguments = json!({ "pattern": "needle" });
    let found = call(directory.path(), "search_files", &arguments).unwrap();
    assert!(found.contains("xneedlex") && found.len() < 1_000, "{found}");
}

#[test]
fn files_of_binary_formats_are_skipped() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("r.pdf"), "%PDF-1.4\n1 0 obj\nendobj\n").unwrap();
    fs::write(directory.path().join("r.txt"), "endobj\n").unwrap();
    let check = |path: &str, expected: &str| {
        let arguments = json!({ "pattern": "endobj", "path": path });
        assert_eq!(call(directory.path(), "search_files", &arguments).unwrap(), expected);
    };
    check(".", "r.txt\n1:endobj\n[passed over 1 binary file]");
    check("r.pdf", "r.pdf\n[binary file matches; its lines are not shown]");
}

#[test]
fn globs_may_start_with_the_workspace_path() {
    let files = ["src/a.rs", "src/b/c.rs", "d.rs"].map(|path| (path.to_owned(), "q\n".to_owned()));
    let directory = tree(&files.into());
    let root = directory.path().to_str().unwrap();
    let check = |globs: &[&str], expected: &[&str]| {
        let globs: Vec<_> = globs.iter().map(|glob| glob.replace("ROOT", root)).collect();
        let found = call(directory.path(), "find_files", &json!({ "globs": globs })).unwrap();
        assert_eq!(sorted(&found), expected, "{globs:?}");
    };
    check(&["ROOT/src/**"], &["src/a.rs", "src/b/c.rs"]);
    check(&["ROOT/*.rs"], &["d.rs"]);
    check(&["ROOT", "!ROOT/src/b/**"], &["d.rs", "src/a.rs"]);
    check(&["ROOTS/*.rs"], &[]);
}
