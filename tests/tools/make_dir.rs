//! `make_dir`, through the binary.

use serde_json::json;

use crate::support::Workspace;

#[test]
fn directories_are_made_and_those_that_no_tool_makes_are_not() {
    let workspace = Workspace::of_files();
    workspace.file("file", "");
    let check = |path: &str, expected: &str| {
        let run = workspace.tool("make_dir", &json!({ "path": path }), &[]);
        assert_eq!(format!("{}{}", run.stdout, run.stderr), expected, "{path}");
    };
    check("a/日本", "[made, with 1 other above it]\n");
    check("a", "[exists already]\n");
    check("file", "error: `file` exists already and is no directory\n");
    check(".git", "error: `.git` cannot be made: no tool changes `.git`\n");
    check(
        "../out",
        "error: `../out` cannot be made: it leads out of what this tool is granted (`/workspace`), \
         or into a secret\n",
    );
    assert!(workspace.path("a/日本").is_dir());
    assert!(!workspace.outside().join("out").exists());
}
