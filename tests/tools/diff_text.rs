//! `diff_text`, through the real component.

use serde_json::json;

use crate::support::Workspace;
use crate::support::cases::{call, check_cases};

#[test]
fn differences_are_a_unified_diff() {
    check_cases("text", &["diff_text.txt"]);
}

#[test]
fn large_unrelated_files_are_compared() {
    let workspace = Workspace::with_toolsets(&["text"]).with_time();
    let lines =
        |from: usize| (from..from + 200_000).map(|it| format!("{it}\n")).collect::<String>();
    workspace.file("old", lines(0));
    workspace.file("new", lines(1_000_000));
    let arguments = json!({ "old_path": "old", "new_path": "new", "max_bytes": 60 });
    let diff = call(&workspace.kitbag(), "diff_text", arguments).unwrap();
    let expected = "[truncated: 200000 lines removed and 200000 added in total; raise max_bytes \
                    for the rest]\n";
    assert!(diff.starts_with("--- old\n+++ new\n@@") && diff.ends_with(expected), "{diff}");
}
