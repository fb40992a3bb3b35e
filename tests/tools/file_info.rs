//! `file_info`, through the binary.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::support::Workspace;

#[test]
fn the_properties_of_a_path_are_data() {
    let workspace = Workspace::with_toolsets(&["files"]);
    workspace.file("a.txt", "1\n2\n");
    workspace.file("日本/x", "");
    workspace.file(".env", "token = 1234\n");
    workspace.file("huge", "x\n".repeat(10_000_000));
    symlink("a.txt", workspace.path("link")).unwrap();
    let info = |path: &str| -> Value {
        let run = workspace.tool("file_info", &json!({ "path": path }), &[]);
        let mut info: Value = serde_json::from_str(&run.clone().success()).unwrap();
        assert!(info.as_object_mut().unwrap().remove("modified").is_some(), "{}", run.shown());
        info
    };
    let digest = "a6e2b7a04068";
    assert_eq!(info("a.txt"), json!({ "type": "file", "size": 4, "lines": 2, "digest": digest }));
    assert_eq!(
        info("link"),
        json!({ "type": "file", "size": 4, "lines": 2, "digest": digest, "link": "a.txt" })
    );
    assert_eq!(info("日本"), json!({ "type": "directory", "entries": 1 }));
    assert_eq!(info(".env"), json!({ "type": "secret" }));
    mknodat(CWD, workspace.path("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    UnixListener::bind(workspace.path("socket")).unwrap();
    assert_eq!(info("fifo"), json!({ "type": "other" }));
    assert_eq!(info("socket"), json!({ "type": "other" }));
    assert_eq!(info("huge"), json!({ "type": "file", "size": 20_000_000 }));
    let missing = workspace.tool("file_info", &json!({ "path": "b.txt" }), &[]);
    assert_eq!(missing.stderr, "error: `b.txt` does not exist; nearest: `a.txt`\n");
}
