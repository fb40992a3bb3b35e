//! `convert_data`, through the real binary. Formats in detail are tested in
//! `guest-tools/data`.

use std::fs;
use std::thread;

use serde_json::json;

use crate::support::{CallInTest, Workspace};

#[track_caller]
fn check(workspace: &Workspace, arguments: &[&str], expected: &str) {
    let run = workspace.run(&[&["run", "convert_data"], arguments].concat());
    assert_eq!(run.stdout.trim_end(), expected, "{}", run.stderr);
}

#[track_caller]
fn check_error(workspace: &Workspace, arguments: &[&str], expected: &str) {
    let run = workspace.run(&[&["run", "convert_data"], arguments].concat());
    assert!(run.code == 1 && run.stderr.contains(expected), "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout, "");
}

#[test]
fn rows_of_a_large_file_are_read_one_by_one() {
    let workspace = Workspace::with_toolsets(&["data"]).with_time();
    // More than the limit for a document.
    workspace.file("a.csv", "n,text\n".to_owned() + &"1,of no interest at all\n".repeat(3_000_000));
    workspace.file("a.jsonl", "{\"n\":1,\"text\":\"of no interest\"}\n".repeat(2_500_000));
    let last = ["to=jsonl", "offset=2999999", "limit=5"];
    let row = "{\"n\":1,\"text\":\"of no interest at all\"}";
    check(&workspace, &[&["path=a.csv"], &last[..]].concat(), row);
    for path in ["path=a.csv", "path=a.jsonl"] {
        let run = workspace.run(&["run", "convert_data", path, "to=csv"]);
        let part = run.success();
        assert!(part.len() < 50_000 && part.ends_with(" reads on]\n"), "{}", part.len());
    }
    let array = ["path=a.jsonl", "to=json", "limit=1"];
    check(&workspace, &array, "[\n  {\n    \"n\": 1,\n    \"text\": \"of no interest\"\n  }\n]");
    workspace.file("open.csv", "a\n\"".to_owned() + &"x".repeat(17 << 20));
    check_error(
        &workspace,
        &["path=open.csv", "to=json"],
        "a row has more than 4 MiB; is a quote not closed? (line 2",
    );
    workspace.file("a.yaml", format!("a: {}\n", "x".repeat(17 << 20)));
    check_error(&workspace, &["path=a.yaml", "to=json"], "`a.yaml` has more than 16 MiB");
}

#[test]
fn hostile_documents_end_with_an_explanation() {
    let workspace = Workspace::with_toolsets(&["data"]);
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        laughs += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    workspace.file("laughs.yaml", laughs);
    check_error(&workspace, &["path=laughs.yaml", "to=json"], "its aliases expand to more than");
    let nested = format!("a = {}", format!("{{{}a=", "a.".repeat(70)).repeat(70));
    let closed = nested + "1" + &"}".repeat(70);
    for (name, text) in [
        ("a.yaml", "- ".repeat(1 << 20)),
        ("b.yaml", "[".repeat(1 << 20)),
        ("a.toml", format!("a = {}", "[".repeat(1 << 20))),
        ("b.toml", closed),
        ("a.json", "[".repeat(1 << 20)),
    ] {
        workspace.file(name, text);
        check_error(&workspace, &[&format!("path={name}"), "to=jsonl"], "recur");
    }
}

#[test]
fn an_assumed_encoding_is_named() {
    let workspace = Workspace::with_toolsets(&["data"]);
    fs::write(workspace.path("latin.csv"), b"a\n\xe4\n").unwrap();
    let run = workspace.run(&["run", "convert_data", "path=latin.csv", "to=json"]);
    assert!(run.stdout.contains("\"ä\""), "{}", run.shown());
    assert_eq!(run.stderr, "note of the tool: `latin.csv`: read as Latin-1\n");
}

#[test]
fn concurrent_calls_have_the_same_answer() {
    let workspace = Workspace::with_toolsets(&["data"]);
    let kitbag = workspace.kitbag();
    let arguments = || json!({ "text": "[1,{\"a\":2}]", "to": "yaml" });
    thread::scope(|scope| {
        let ask = || kitbag.call_in_test("convert_data", arguments());
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), "- 1\n- a: 2\n");
        }
    });
}
