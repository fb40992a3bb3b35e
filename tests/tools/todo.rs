//! `todo`, through the real component.

use serde_json::{Value, json};

use crate::support::Workspace;

#[test]
fn tasks_persist_across_sessions_until_removed() {
    let workspace = Workspace::with_toolsets(&["memory"]);
    let todo = |arguments: Value| workspace.tool("todo", &arguments, &[]);
    let answer = todo(json!({ "action": "add", "text": "Renew the certificate" })).success();
    let id = answer.trim_end().strip_prefix("added ").unwrap().to_owned();
    assert_eq!(
        todo(json!({ "action": "list" })).success(),
        format!("[ ] {id} Renew the certificate\n")
    );
    let done = todo(json!({ "action": "done", "id": id })).success();
    assert_eq!(done, "done: Renew the certificate\n");
    assert_eq!(
        todo(json!({ "action": "list" })).success(),
        format!("[x] {id} Renew the certificate\n")
    );
    // A task is not a memory.
    let recall = workspace.tool("recall", &json!({ "query": "certificate" }), &[]).success();
    assert_eq!(recall, "no memories are stored\n");
    todo(json!({ "action": "remove", "id": id })).success();
    assert_eq!(todo(json!({ "action": "list" })).success(), "no tasks\n");
    let gone = todo(json!({ "action": "done", "id": id }));
    assert_eq!(gone.stderr, format!("error: there is no task `{id}`\n"));
    let unknown = todo(json!({ "action": "sing" }));
    assert_eq!(unknown.code, 2, "{}", unknown.shown());
}
