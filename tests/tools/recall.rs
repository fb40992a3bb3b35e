//! `recall`, through the real component. Words and ranks in detail are tested in
//! `guest-tools/memory`.

use serde_json::json;

use crate::support::Workspace;

#[test]
fn the_best_match_comes_first() {
    let workspace = Workspace::with_toolsets(&["memory"]);
    for (text, tags) in [
        ("Staging deploys from the branch `stage`.", vec!["deploy"]),
        ("We deploy on Fly. Ana Müller deploys.", vec!["deploy", "fly"]),
        ("東京の鍵は金庫にある。", vec![]),
    ] {
        workspace.tool("remember", &json!({ "text": text, "tags": tags }), &[]).success();
    }
    let recall = |arguments| {
        let answer = workspace.tool("recall", &arguments, &[]).success();
        let lines = answer.lines().map(|line| line.split_once("  ").unwrap_or((line, line)).1);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (staging, fly) =
        ("Staging deploys from the branch `stage`.", "We deploy on Fly. Ana Müller deploys.");
    assert_eq!(recall(json!({ "query": "deploy stage" })), [staging, fly]);
    assert_eq!(recall(json!({ "query": "MULLER" })), [fly]);
    assert_eq!(recall(json!({ "query": "東京" })), ["東京の鍵は金庫にある。"]);
    assert_eq!(recall(json!({ "tags": ["fly"] })), [fly]);
    assert_eq!(recall(json!({ "until": "2020-01-01" })), ["0 of 3 memories match"]);
    let newest = recall(json!({ "since": "2020-01-01", "limit": 2 }));
    assert_eq!(newest, ["東京の鍵は金庫にある。", fly, "1 more match"]);
}
