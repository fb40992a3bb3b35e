//! `remove_path`, through the binary.

use serde_json::json;

use crate::support::Workspace;
use crate::support::files::names;

#[test]
fn nothing_is_removed_without_consent() {
    let workspace = Workspace::of_files();
    workspace.file("in/a", "1");
    workspace.file("in/日本/b", "22");
    let all = json!({ "path": "in", "recursive": true });
    let asked = workspace.tool("remove_path", &all, &[]);
    assert!(
        asked.stderr.contains("Remove `in` (a directory with 3 entries, 3 B)?"),
        "{}",
        asked.shown()
    );
    let refused = workspace.tool("remove_path", &all, &["remove=false"]);
    assert_eq!(refused.stderr, "error: removing was refused; nothing was changed\n");
    assert!(workspace.path("in/a").exists());
    let removed = workspace.tool("remove_path", &all, &["remove=true"]).success();
    assert_eq!(removed, "[removed: a directory with 3 entries, 3 B]\n");
    assert_eq!(names(&workspace.root()), [".kitbag"]);
}

#[test]
fn what_holds_something_that_no_tool_removes_stays_as_a_whole() {
    let workspace = Workspace::of_files();
    workspace.file("a/x", "");
    workspace.file("a/deep/.env", "token = 1234\n");
    workspace.file("b/.git/HEAD", "");
    for (path, held) in [("a", "a/deep/.env"), ("b", "b/.git")] {
        let arguments = json!({ "path": path, "recursive": true });
        let run = workspace.tool("remove_path", &arguments, &["remove=true"]);
        assert_eq!(
            run.stderr,
            format!("error: `{path}` holds `{held}`, which no tool removes\n")
        );
    }
    assert!(workspace.path("a/x").exists());
}

#[test]
fn consent_is_not_asked_for_what_is_refused_anyway() {
    let workspace = Workspace::of_files();
    workspace.config(
        "[tools.remove_path]\nsource = \"builtin\"\n\
         grants.filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"ro\" }]\n",
    );
    workspace.file("a", "1");
    let run = workspace.tool("remove_path", &json!({ "path": "a" }), &[]);
    let expected = "error: `a` cannot be removed: `/workspace` is granted read-only\n";
    assert!(run.stderr.starts_with(expected), "{}", run.shown());
    assert!(!run.stderr.contains("Remove `a`"), "{}", run.shown());
}

#[test]
fn the_line_that_allows_a_secret_stands_where_no_consent_is_asked() {
    let workspace = Workspace::of_files();
    workspace.file(".env", "token = 1234\n");
    let run = workspace.tool("remove_path", &json!({ "path": ".env" }), &[]);
    let expected = "error: `.env` cannot be removed: it looks like a secret\n";
    assert!(run.stderr.starts_with(expected), "{}", run.shown());
    assert!(run.stderr.contains("include = [\".env\"]"), "{}", run.shown());
}
