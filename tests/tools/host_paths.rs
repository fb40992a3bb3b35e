//! Paths of the host in the arguments of built-in tools, through the binary. The forms that are
//! read are tested in `kitbag-toolbox`.

use std::fs;

use serde_json::json;

use crate::support::{Workspace, guest};

#[test]
fn a_path_of_the_host_means_the_file_of_the_workspace() {
    let workspace = Workspace::of_files();
    workspace.file("src/a.txt", "needle\n");
    let root = workspace.root();
    let root = root.to_str().unwrap();
    let absolute = format!("{root}/src/a.txt");
    let check = |tool: &str, arguments: serde_json::Value, expected: &str| {
        let run = workspace.tool(tool, &arguments, &[]);
        assert!(run.stdout.starts_with(expected), "{tool} {arguments}\n{}", run.shown());
        assert!(!run.shown().contains("<workspace>"), "{}", run.shown());
    };
    check("read_file", json!({ "path": absolute }), "[1 line, digest");
    check("read_file", json!({ "paths": [absolute, "src/a.txt"] }), "[src/a.txt: 1 line");
    check("read_file", json!({ "path": format!("file://{absolute}") }), "[1 line, digest");
    check("list_dir", json!({ "path": root }), ".kitbag/\nsrc/");
    check("file_info", json!({ "path": absolute }), "{\"");
    check(
        "edit_file",
        json!({ "path": absolute, "edits": [{ "old_text": "needle", "new_text": "pin" }] }),
        "@@",
    );
    let patch =
        format!("*** Begin Patch\n*** Update File: {absolute}\n@@\n-pin\n+nail\n*** End Patch");
    check("apply_patch", json!({ "patch": patch }), "src/a.txt: digest");
    let patch = format!("--- {absolute}\n+++ {absolute}\n@@ -1 +1 @@\n-nail\n+needle\n");
    check("apply_patch", json!({ "patch": patch }), "src/a.txt: digest");
    assert_eq!(fs::read_to_string(&absolute).unwrap(), "needle\n");
    check("move_path", json!({ "path": absolute, "to": format!("{root}/b.txt") }), "");
    assert!(workspace.path("b.txt").exists());
}

/// The attack: to find out what is on the host by what a path is taken for.
#[test]
fn a_path_outside_of_the_grants_says_nothing_about_the_host() {
    let workspace = Workspace::with_toolsets(&["files"]);
    workspace.file("a.txt", "text\n");
    fs::write(workspace.outside().join("secret.txt"), "outside").unwrap();
    let outside = workspace.outside().to_str().unwrap();
    let refused = |path: String| {
        let run = workspace.tool("read_file", &json!({ "path": path.clone() }), &[]);
        assert_ne!(run.code, 0, "{}", run.shown());
        run.stderr.replace(&workspace.redact(&path), "PATH")
    };
    let there = refused(format!("{outside}/secret.txt"));
    assert_eq!(there, refused(format!("{outside}/nothing.txt")));
    assert_eq!(there, refused(format!("{outside}/nothing/../workspace/a.txt")));
    assert!(there.contains("lies outside of what this tool is granted (`/workspace`)"), "{there}");
    assert!(!there.contains('<'), "{there}");
    // The rest of a path is still the host's to refuse.
    let up = refused(format!("{outside}/workspace/../secret.txt"));
    assert!(up.contains("../secret.txt") && !up.contains('<'), "{up}");
}

#[test]
fn a_condition_sees_the_path_that_the_tool_sees() {
    let workspace = Workspace::with_toolsets(&["files"]);
    workspace.file("docs/a.txt", "text\n");
    workspace.file("b.txt", "text\n");
    workspace.own_config(&format!(
        "[tools.relay]\nsource = \"local\"\nwasm = {:?}\n[tools.relay.grants]\nfilesystem = []\n\
         tools = {{ read = {{ tool = \"read_file\", where = {{ path = \"docs/*\" }} }} }}\n",
        guest("relay")
    ));
    let read = |path: &str| {
        let step = json!([{ "call": { "tool": "read", "arguments": { "path": path } } }]);
        workspace.run(&["run", "relay", "--args", &json!({ "steps": step }).to_string()]).success()
    };
    assert!(read("docs/a.txt").starts_with("ok [1 line"));
    // A backslash separates, so that the pattern is not met.
    assert!(read("docs\\..\\b.txt").starts_with("error "), "{}", read("docs\\..\\b.txt"));
    // A component learns nothing of where the workspace is.
    let root = workspace.root();
    assert!(read(&format!("{}/docs/a.txt", root.display())).starts_with("error "));
}
