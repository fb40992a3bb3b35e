//! `query_data`, through the real binary. Queries in detail are tested in
//! `guest-tools/data`.

use std::thread;

use serde_json::json;

use crate::support::{CallInTest, Workspace};

#[track_caller]
fn check(workspace: &Workspace, arguments: &[&str], expected: &str) {
    let run = workspace.run(&[&["run", "query_data"], arguments].concat());
    assert_eq!(run.stdout.trim_end(), expected, "{}", run.stderr);
}

#[track_caller]
fn check_error(workspace: &Workspace, arguments: &[&str], expected: &str) {
    let run = workspace.run(&[&["run", "query_data"], arguments].concat());
    assert!(run.code != 0 && run.stderr.contains(expected), "{}{}", run.stdout, run.stderr);
}

#[test]
fn parts_of_a_document_are_found_and_numbers_keep_their_digits() {
    let workspace = Workspace::with_toolsets(&["data"]);
    let document = "{\"ä\":[1e400,12345678901234567890123,0.10],\"b\":\"日本\"}";
    workspace.file("a.json", document);
    workspace.file("empty.json", "");
    let all = "{\"results\":[1e400,12345678901234567890123,0.10]}";
    check(&workspace, &["path=a.json", "query=$.ä[*]"], &all.replace("1e400", "1e+400"));
    check(&workspace, &["path=a.json", "query=.[\"ä\"][]"], all);
    check(&workspace, &["path=a.json", "query=.b"], "{\"results\":[\"日本\"]}");
    check_error(&workspace, &["path=empty.json", "query=$"], "line 1, column 1");
    check_error(&workspace, &["path=b.json", "query=$"], "`b.json` does not exist");
    check_error(&workspace, &["path=a.json", "query=input"], "there is no filter `input` here");
}

#[test]
fn json_lines_are_streamed_and_other_documents_are_limited() {
    let workspace = Workspace::with_toolsets(&["data"]).with_time();
    workspace
        .file("a.jsonl", "{\"n\":1,\"text\":\"of no interest\"}\n".repeat(600_000) + "{\"n\":2}\n");
    check(&workspace, &["path=a.jsonl", "query=select(.n == 2).n"], "{\"results\":[2]}");
    workspace.file("a.json", format!("\"{}\"", "x".repeat(17 << 20)));
    check_error(&workspace, &["path=a.json", "query=$"], "`a.json` has more than 16 MiB");
}

#[test]
fn a_document_of_four_megabytes_fits_the_memory_of_a_call() {
    let workspace = Workspace::with_toolsets(&["data"]).with_time();
    let record = json!({ "id": 0.7182818284590452, "name": "user", "tags": ["a", "b", "c", "d"] });
    workspace.file("a.json", format!("[{}0]", format!("{record},").repeat(57_000)));
    check(&workspace, &["path=a.json", "query=.[0].tags[1]"], "{\"results\":[\"b\"]}");
    check(&workspace, &["path=a.json", "query=$[0].tags[1]"], "{\"results\":[\"b\"]}");
}

#[test]
fn hostile_documents_and_filters_end_with_the_limit() {
    let workspace = Workspace::with_toolsets(&["data"]);
    workspace.file("deep.json", "[".repeat(1 << 20));
    check_error(&workspace, &["path=deep.json", "query=$"], "recursion limit exceeded");
    check_error(&workspace, &["text=0", "query=[repeat(1)]"], "limit: ");
    for filter in ["def f: 1 + f; f", "def f(g): g | f(g); f(.)", "def g(f): f | g(g(f)); g(.)"] {
        check_error(&workspace, &["text=0", &format!("query={filter}")], "recursion is too deep");
    }
    check(
        &workspace,
        &["text=0", "query=range(1; infinite)", "limit=2"],
        "{\"results\":[1,2],\"more\":true,\"next_offset\":2}",
    );
}

#[test]
fn concurrent_calls_have_the_same_answer() {
    let workspace = Workspace::with_toolsets(&["data"]);
    let kitbag = workspace.kitbag();
    let arguments = || json!({ "text": "[1,2]", "query": "add" });
    thread::scope(|scope| {
        let ask = || kitbag.call_in_test("query_data", arguments());
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), "{\"results\":[3]}");
        }
    });
}
