use kitbag_sdk::json;

use super::Tools;
use crate::memories::{MOST_SHOWN, SHOWN};

/// A few memories of a team.
fn team() -> Tools {
    let tools = Tools::default();
    tools.remember("2026-01-05", "Staging deploys from the branch `stage`.", &["deploy"]);
    tools.remember("2026-02-10", "We deploy on Fly.\nNever on a Friday.", &["deploy", "fly"]);
    tools.remember("2026-03-15", "Ana reviews migrations of the database.", &["team"]);
    tools
}

#[test]
fn memories_are_found_by_words_best_first() {
    let tools = team();
    let expected = "m100000000002 2026-02-10 #deploy #fly  Never on a Friday.…\n";
    assert_eq!(tools.recall("friday") + "\n", expected);
    // The rarer word, and the shorter text, have a higher weight.
    assert_eq!(
        tools.recall("deploy stage"),
        "m100000000001 2026-01-05 #deploy  Staging deploys from the branch `stage`.\n\
         m100000000002 2026-02-10 #deploy #fly  We deploy on Fly.…"
    );
    assert_eq!(
        tools.recall("MIGRATION"),
        "m100000000003 2026-03-15 #team  Ana reviews migrations of the database."
    );
    // Tags are words as well.
    assert!(tools.recall("team").starts_with("m100000000003 "));
    assert_eq!(tools.recall("kubernetes"), "0 of 3 memories match");
    assert_eq!(Tools::default().recall("x"), "no memories are stored");
}

#[test]
fn tags_and_dates_filter_results() {
    let tools = team();
    let ids = |arguments| {
        let answer = tools.ok("recall", arguments);
        answer.lines().map(|line| line[11..13].to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(json!({})), "03 02 01");
    assert_eq!(ids(json!({ "tags": ["#Deploy"] })), "02 01");
    assert_eq!(ids(json!({ "tags": ["deploy", "fly"] })), "02");
    assert_eq!(ids(json!({ "since": "2026-02-10" })), "03 02");
    assert_eq!(ids(json!({ "until": "2026-02-10" })), "02 01");
    assert_eq!(ids(json!({ "since": "2026-02-10T00:00:00.001Z" })), "03");
    assert_eq!(ids(json!({ "since": "2026-01-05", "until": "2026-01-05", "query": "" })), "01");
    assert_eq!(ids(json!({ "query": "the", "tags": ["team"] })), "03");
    let first = tools.ok("recall", json!({ "limit": 1 }));
    assert!(first.ends_with("\n2 more match"), "{first}");
}

#[test]
fn ids_return_complete_memories() {
    let tools = team();
    let whole =
        "m100000000002 2026-02-10T00:00:00Z #deploy #fly\nWe deploy on Fly.\nNever on a Friday.";
    assert_eq!(tools.ok("recall", json!({ "id": "m100000000002" })), whole);
    let error = tools.error("recall", json!({ "id": "m999999999999" }));
    assert_eq!(error, "there is no memory `m999999999999`");
}

#[test]
fn memories_are_forgotten_atomically() {
    let tools = team();
    let some = json!({ "ids": ["m100000000001", "m999999999999"] });
    assert_eq!(tools.error("forget", some), "there is no memory `m999999999999`");
    assert_eq!(tools.values().len(), 3);
    let both = json!({ "ids": ["m100000000001", "m100000000003", "m100000000001"] });
    assert_eq!(tools.ok("forget", both), "forgot 2 memories");
    assert_eq!(tools.values().keys().collect::<Vec<_>>(), ["m100000000002"]);
    assert_eq!(tools.error("forget", json!({ "ids": [] })), "`ids` is empty; name a memory");
}

#[test]
fn lists_have_all_tags_and_continue() {
    let tools = team();
    assert_eq!(
        tools.ok("list_memories", json!({ "limit": 2 })),
        "3 memories #deploy 2 #fly 1 #team 1\n\
         m100000000003 2026-03-15 #team  Ana reviews migrations of the database.\n\
         m100000000002 2026-02-10 #deploy #fly  We deploy on Fly.…\n\
         1 older, after m100000000002"
    );
    assert_eq!(
        tools.ok("list_memories", json!({ "after": "m100000000002" })),
        "3 memories #deploy 2 #fly 1 #team 1\n\
         m100000000001 2026-01-05 #deploy  Staging deploys from the branch `stage`."
    );
    assert_eq!(Tools::default().ok("list_memories", json!({})), "no memories are stored");
    let error = tools.error("list_memories", json!({ "after": "m000000000000" }));
    assert_eq!(error, "there is no memory `m000000000000`");
}

#[test]
fn tasks_are_added_done_and_removed() {
    let tools = Tools::default();
    let todo = |arguments| tools.ok("todo", arguments);
    assert_eq!(todo(json!({ "action": "list" })), "no tasks");
    let added = todo(json!({ "action": "add", "text": " Renew the certificate " }));
    assert_eq!(added, "added t100000000001");
    todo(json!({ "action": "add", "text": "Ask Ana" }));
    let done = todo(json!({ "action": "done", "id": "t100000000001" }));
    assert_eq!(done, "done: Renew the certificate");
    assert_eq!(
        todo(json!({ "action": "list" })),
        "[ ] t100000000002 Ask Ana\n[x] t100000000001 Renew the certificate"
    );
    assert_eq!(todo(json!({ "action": "remove", "id": "t100000000001" })), "removed t100000000001");
    assert_eq!(todo(json!({ "action": "list" })), "[ ] t100000000002 Ask Ana");
    let error = |arguments| tools.error("todo", arguments);
    let gone = error(json!({ "action": "done", "id": "t100000000001" }));
    assert_eq!(gone, "there is no task `t100000000001`");
    assert_eq!(error(json!({ "action": "add" })), "the task needs a `text`");
    assert_eq!(error(json!({ "action": "done" })), "`id` is empty; name a task");
    let two = error(json!({ "action": "add", "text": "one\ntwo" }));
    assert_eq!(two, "line 1, column 4 of the text: a task must be one line");
    // Memories and tasks are separate.
    assert_eq!(tools.recall("Ana"), "no memories are stored");
    let memory = error(json!({ "action": "remove", "id": "m100000000001" }));
    assert_eq!(memory, "`m100000000001` is not the id of a task, such as `t482913004117`");
}

#[test]
fn ten_thousand_memories_need_few_store_requests() {
    let tools = Tools::default();
    for number in 0..10_000 {
        tools.remember("2026-01-05", &format!("The number {number} of them all."), &["n"]);
    }
    for arguments in [json!({ "query": "number 777" }), json!({ "tags": ["n"] })] {
        tools.kept.uses.set(0);
        tools.ok("recall", arguments);
        // The keys, 50 times 200 values, and the displayed memories.
        assert_eq!(tools.kept.uses.get(), 1 + 50 + 1);
    }
    assert!(tools.recall("number 777").contains("  The number 777 of them all."));
}

#[test]
fn tools_request_only_storage() {
    let description: serde_json::Value = serde_json::from_str(crate::DESCRIPTION).unwrap();
    let tools = description["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 5);
    for tool in tools {
        let wish = json!({ "filesystem": [], "storage": true, "required": ["storage"] });
        assert_eq!(tool["grants"], wish, "{}", tool["name"]);
    }
    for tool in ["recall", "list_memories"] {
        let tool = tools.iter().find(|it| it["name"] == tool).unwrap();
        let expected = json!({
            "type": "integer", "minimum": 1, "maximum": MOST_SHOWN, "default": SHOWN,
        });
        assert_eq!(tool["inputSchema"]["properties"]["limit"], expected);
    }
}
