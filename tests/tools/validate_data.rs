//! `validate_data`, through the real binary. Schemas in detail are tested in
//! `guest-tools/data`.

use std::fs;
use std::thread;

use serde_json::json;

use crate::support::{CallInTest, Workspace};

#[test]
fn no_schema_outside_the_workspace_is_retrieved() {
    let workspace = Workspace::with_toolsets(&["data"]);
    fs::write(workspace.outside().join("o.json"), "{}").unwrap();
    workspace.file(".env", "{}");
    for reference in ["https://example.com/a.json", "../o.json", "file:///etc/passwd", ".env"] {
        workspace.file("s.json", json!({ "$ref": reference }).to_string());
        let run = workspace.run(&["run", "validate_data", "text=1", "schema_path=s.json"]);
        let says = "the schema cannot be used";
        assert!(run.code == 1 && run.stderr.contains(says), "{reference}: {}", run.stderr);
    }
}

#[test]
fn a_pattern_takes_linear_time_and_errors_are_counted() {
    let workspace = Workspace::with_toolsets(&["data"]);
    workspace.file("a.json", format!("\"{}!\"", "a".repeat(100_000)));
    workspace.file("s.json", "{\"pattern\":\"^(a+)+$\"}");
    let run = workspace.run(&["run", "validate_data", "path=a.json", "schema_path=s.json"]);
    assert_eq!(run.json()["valid"], false);
    workspace.file("a.json", json!(vec!["x"; 1_000]).to_string());
    workspace.file("s.json", "{\"items\":{\"type\":\"null\"}}");
    let run = workspace.run(&["run", "validate_data", "path=a.json", "schema_path=s.json"]);
    assert_eq!(run.json()["left_out"], 980);
}

#[test]
fn concurrent_calls_have_the_same_answer() {
    let workspace = Workspace::with_toolsets(&["data"]);
    let kitbag = workspace.kitbag();
    let arguments = || json!({ "text": "1", "schema": { "type": "integer" } });
    thread::scope(|scope| {
        let ask = || kitbag.call_in_test("validate_data", arguments());
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), "{\"valid\":true,\"errors\":[]}");
        }
    });
}
