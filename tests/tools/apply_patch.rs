//! `apply_patch`, through the binary. The rules in detail are tested in `guest-tools/files`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::support::files::names;
use crate::support::{Workspace, snapshot};

#[test]
fn three_files_are_changed_by_one_patch_and_back_by_another() {
    let workspace = Workspace::of_files();
    workspace.file("a.rs", "fn a() {}\n");
    workspace.file("src/日本.rs", "fn b() {}\n");
    let script = workspace.file("run.sh", "echo c\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let there = "*** Begin Patch\n*** Update File: a.rs\n@@\n-fn a() {}\n+fn a() -> u8 { 1 }\n\
                 *** Update File: src/日本.rs\n@@\n-fn b() {}\n+fn b() -> u8 { 2 }\n\
                 *** Update File: run.sh\n*** Move to: bin/run.sh\n@@\n-echo c\n+echo d\n*** End Patch\n";
    let back = "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-fn a() -> u8 { 1 }\n+fn a() {}\n\
                --- a/src/日本.rs\n+++ b/src/日本.rs\n@@ -1 +1 @@\n-fn b() -> u8 { 2 }\n+fn b() {}\n";
    let [there, back] = [there, back].map(|patch| {
        workspace.tool("apply_patch", &json!({ "patch": patch }), &[]).success()
    });
    snapshot!("there and back", &format!("{there}\n{back}"));
    let mode = fs::metadata(workspace.path("bin/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    assert_eq!(fs::read_to_string(workspace.path("a.rs")).unwrap(), "fn a() {}\n");
    assert_eq!(names(&workspace.root()), [".kitbag", "a.rs", "bin", "src"]);
}

#[test]
fn where_one_file_cannot_be_changed_none_is() {
    let workspace = Workspace::of_files();
    workspace.file("a", "1\n");
    workspace.file("b", "2\n");
    fs::create_dir(workspace.path(".git")).unwrap();
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n\
                 --- /dev/null\n+++ b/.git/hook\n@@ -0,0 +1 @@\n+x\n";
    let run = workspace.tool("apply_patch", &json!({ "patch": patch }), &[]);
    assert_eq!(
        run.stderr,
        "error: `.git/hook` cannot be written: no tool changes `.git`\n  Nothing was changed.\n"
    );
    assert_eq!(fs::read_to_string(workspace.path("a")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(workspace.path("b")).unwrap(), "2\n");
    assert_eq!(names(&workspace.root()), [".git", ".kitbag", "a", "b"]);
}

#[test]
fn removing_what_the_patch_does_not_show_takes_consent() {
    let workspace = Workspace::of_files();
    workspace.file("a", "1\n");
    let patch = json!({ "patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch" });
    let asked = workspace.tool("apply_patch", &patch, &[]);
    assert!(asked.stderr.contains("The patch removes `a`. Shall it?"), "{}", asked.shown());
    let refused = workspace.tool("apply_patch", &patch, &["remove=false"]);
    assert_eq!(refused.stderr, "error: removing was refused; nothing was changed\n");
    assert!(workspace.path("a").exists());
    workspace.tool("apply_patch", &patch, &["remove=true"]).success();
    assert!(!workspace.path("a").exists());
}

#[test]
fn a_link_is_neither_removed_nor_moved_for_what_it_leads_to() {
    let workspace = Workspace::with_toolsets(&["files", "write"]);
    workspace.file("a.txt", "target\n");
    symlink("a.txt", workspace.path("ln")).unwrap();
    let patches = [
        "*** Begin Patch\n*** Delete File: ln\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: ln\n*** Move to: ln2\n@@\n-target\n+other\n*** End Patch\n",
        "diff --git a/ln b/ln2\nsimilarity index 100%\nrename from ln\nrename to ln2\n",
        "--- a/ln\n+++ /dev/null\n@@ -1 +0,0 @@\n-target\n",
    ];
    for patch in patches {
        let run = workspace.run(&["run", "apply_patch", &format!("patch={patch}")]);
        assert_eq!(run.code, 1, "{patch}{}", run.shown());
        assert!(run.stderr.contains("`ln` is a link: `remove_path` removes it"), "{}", run.shown());
        assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "target\n", "{patch}");
        assert!(workspace.path("ln").is_symlink() && !workspace.path("ln2").exists(), "{patch}");
    }
}
