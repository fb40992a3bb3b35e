//! `forget`, through the real component.

use serde_json::json;

use crate::support::Workspace;

#[test]
fn all_ids_are_forgotten_or_none() {
    let workspace = Workspace::with_toolsets(&["memory"]);
    let remember = |text: &str| {
        let answer = workspace.tool("remember", &json!({ "text": text }), &[]).success();
        answer.trim_end().strip_prefix("remembered ").unwrap().to_owned()
    };
    let (one, two) = (remember("one"), remember("two"));
    let some = workspace.tool("forget", &json!({ "ids": [one, "m000000000000"] }), &[]);
    assert_eq!(some.stderr, "error: there is no memory `m000000000000`\n");
    let list = || workspace.tool("list_memories", &json!({}), &[]).success();
    assert!(list().starts_with("2 memories\n"));
    let both = workspace.tool("forget", &json!({ "ids": [one, two] }), &[]).success();
    assert_eq!(both, "forgot 2 memories\n");
    assert_eq!(list(), "no memories are stored\n");
}
