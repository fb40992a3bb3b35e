//! `list_memories`, through the real component.

use serde_json::json;

use crate::support::Workspace;

#[test]
fn the_newest_memories_come_first_with_all_tags() {
    let workspace = Workspace::with_toolsets(&["memory"]);
    let list = |arguments| workspace.tool("list_memories", &arguments, &[]).success();
    assert_eq!(list(json!({})), "no memories are stored\n");
    let file: String = (1..=12)
        .map(|day| format!("## 2026-01-{day:02} m{day:012} #t{}\n> Day {day}.\n> More.\n", day % 2))
        .collect();
    let path = workspace.file("days.md", format!("# Memories\n{file}"));
    workspace.run(&["memory", "import", path.to_str().unwrap()]).success();
    let first = list(json!({ "limit": 2 }));
    assert_eq!(
        first,
        "12 memories #t0 6 #t1 6\n\
         m000000000012 2026-01-12 #t0  Day 12.…\n\
         m000000000011 2026-01-11 #t1  Day 11.…\n\
         10 older, after m000000000011\n"
    );
    let rest = list(json!({ "after": "m000000000002" }));
    assert_eq!(rest, "12 memories #t0 6 #t1 6\nm000000000001 2026-01-01 #t1  Day 1.…\n");
}
