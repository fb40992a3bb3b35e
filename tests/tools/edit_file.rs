//! `edit_file`, through the binary. The rules in detail are tested in `guest-tools/files`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::support::files::names;
use crate::support::Workspace;

#[test]
fn a_passage_is_replaced_behind_a_link_and_the_executable_bit_stays() {
    let workspace = Workspace::of_files();
    let file = workspace.file("bin/run", "#!/bin/sh\r\necho é\r\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    symlink("bin/run", workspace.path("run")).unwrap();
    let edits = json!([{ "old_text": "echo é\n", "new_text": "echo 日本\nexit\n" }]);
    let answer = workspace.tool("edit_file", &json!({ "path": "run", "edits": edits }), &[]);
    assert_eq!(
        answer.success(),
        "@@ -1,2 +1,3 @@\n #!/bin/sh\n-echo é\n+echo 日本\n+exit\n[digest 456c416963d6]\n"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "#!/bin/sh\r\necho 日本\r\nexit\r\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o750);
    assert!(workspace.path("run").is_symlink());
    assert_eq!(names(&workspace.path("bin")), ["run"]);
}

#[test]
fn a_link_that_leads_out_is_not_edited() {
    let workspace = Workspace::of_files();
    let outside = workspace.outside().join("a");
    fs::write(&outside, "1").unwrap();
    symlink("../a", workspace.path("link")).unwrap();
    let edits = json!([{ "old_text": "1", "new_text": "2" }]);
    let run = workspace.tool("edit_file", &json!({ "path": "link", "edits": edits }), &[]);
    assert_eq!(run.code, 1, "{}", run.shown());
    assert!(run.stderr.contains("leads out of what this tool is granted"), "{}", run.shown());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "1");
}

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
        "error: `huge` has 13.4 MiB; changing a file takes files of at most 8.0 MiB; split it\n"
    );
}
