//! `edit_file`, through the binary. The rules in detail are tested in `guest-tools/files`.

use std::fs;

use serde_json::json;

use crate::support::Workspace;

#[test]
fn a_huge_file_is_edited_or_refused_within_the_memory_of_a_call() {
    let workspace = Workspace::of_files().with_time();
    let edit = |path: &str| {
        let edits = json!([{ "old_text": "needle", "new_text": "pin" }]);
        workspace.tool("edit_file", &json!({ "path": path, "edits": edits }), &[])
    };
    for (path, content) in [
        ("lines", "\r\n".repeat(1_950_000)),
        ("mixed", "\r\n\n".repeat(1_300_000)),
        ("letters", "é".repeat(1_000_000)),
    ] {
        workspace.file(path, format!("{content}needle{content}"));
        let shown = edit(path);
        assert_eq!(shown.code, 0, "{path}: {}", shown.shown());
        assert!(fs::read_to_string(workspace.path(path)).unwrap().contains("pin"));
    }
    workspace.file("huge", "needle\n".repeat(2_000_000));
    assert_eq!(
        edit("huge").stderr,
        "error: `huge` has 13.4 MiB; the limit for changing a file is 8.0 MiB; split it\n"
    );
}
