//! The storage that tools keep between their calls, through the binary and the server.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Run, Workspace, guest};

/// The tables of a tool with storage, under this name.
fn tool(name: &str, storage: &str) -> String {
    let wasm = guest("keep");
    format!(
        "[tools.{name}]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.{name}.grants]\nfilesystem = []\nstorage = {storage}\n"
    )
}

fn workspace(storage: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.own_config(&tool("keep", storage));
    workspace
}

/// One use of the storage, in a separate process.
fn keep(workspace: &Workspace, tool: &str, arguments: &Value) -> Run {
    workspace.run(&["run", tool, "--args", &arguments.to_string()])
}

#[track_caller]
fn check(workspace: &Workspace, arguments: Value, expected: &str) {
    let answer = keep(workspace, "keep", &arguments).success();
    assert_eq!(answer.trim_end(), expected, "{arguments}");
}

/// The text of an error that the tool returned.
#[track_caller]
fn refused(workspace: &Workspace, arguments: Value) -> String {
    let run = keep(workspace, "keep", &arguments);
    assert_eq!(run.code, 1, "{}", run.shown());
    run.stderr
}

/// The storage file of the only workspace.
fn file(workspace: &Workspace) -> PathBuf {
    let state = workspace.home().join(".local/state/kitbag/workspaces");
    let parts: Vec<_> = state.read_dir().unwrap().map(|part| part.unwrap().path()).collect();
    assert_eq!(parts.len(), 1, "{parts:?}");
    parts[0].join("storage.db")
}

#[test]
fn stored_values_exist_in_the_next_process() {
    let workspace = workspace("true");
    check(&workspace, json!({ "action": "get", "key": "a" }), "none");
    check(&workspace, json!({ "action": "set", "key": "a", "value": "1" }), "done");
    check(&workspace, json!({ "action": "get", "key": "a", "store": "default" }), "1");
    check(&workspace, json!({ "action": "exists", "key": "a" }), "true");
    check(&workspace, json!({ "action": "increment", "key": "n", "delta": 5 }), "5");
    check(&workspace, json!({ "action": "increment", "key": "n", "count": 3 }), "8");
    let both = json!({ "action": "set_many", "keys": ["b", "c"], "value": "2" });
    check(&workspace, both, "done");
    let many = json!({ "action": "get_many", "keys": ["c", "x", "n"] });
    check(&workspace, many, "2\nnone\n8");
    check(&workspace, json!({ "action": "list" }), "a\nn\nb\nc");
    check(&workspace, json!({ "action": "delete", "key": "a" }), "done");
    check(&workspace, json!({ "action": "delete_many", "keys": ["b", "x"] }), "done");
    check(&workspace, json!({ "action": "list" }), "n\nc");
    let error = refused(&workspace, json!({ "action": "get", "key": "a", "store": "other" }));
    assert!(error.contains("no such store"), "{error}");
}

#[test]
fn each_tool_and_workspace_has_its_own_storage() {
    let first = Workspace::new();
    first.own_config(&(tool("keep", "true") + &tool("other", "true")));
    let set = json!({ "action": "set", "key": "a", "value": "of keep" });
    keep(&first, "keep", &set).success();
    let get = json!({ "action": "get", "key": "a" });
    assert_eq!(keep(&first, "other", &get).success(), "none\n");
    let second = first.outside().join("second");
    fs::create_dir_all(second.join(".kitbag")).unwrap();
    let second = second.to_str().unwrap();
    let run = |workspace: &str, arguments: &Value| {
        first.run(&["-w", workspace, "run", "keep", "--args", &arguments.to_string()]).success()
    };
    assert_eq!(run(second, &get), "none\n");
    assert_eq!(run(first.root().to_str().unwrap(), &get), "of keep\n");
}

#[test]
fn without_a_grant_the_error_names_the_line_to_add() {
    let workspace = workspace("false");
    let set = json!({ "action": "set", "key": "a", "value": "1" });
    let error = refused(&workspace, set.clone());
    assert!(error.contains("access denied"), "{error}");
    let line = "no storage is granted; to allow it, set `storage = true` in `tools.keep.grants`";
    assert!(error.contains(line), "{error}");
    assert!(error.contains("for one call, add --grant storage"), "{error}");
    assert!(!workspace.home().join(".local/state/kitbag/workspaces").exists(), "nothing is made");
    let granted = ["run", "keep", "--grant", "storage", "--args", &set.to_string()];
    assert_eq!(workspace.run(&granted).success(), "done\n");
    let why = workspace.run(&["why", "keep", "storage"]);
    assert_eq!(why.code, 6, "{}", why.shown());
    assert!(why.stdout.contains("set `storage = true` in `tools.keep.grants`"), "{}", why.shown());
}

#[test]
fn a_quota_names_its_line_and_covers_the_whole_tool() {
    let workspace = workspace("{ quota = \"1KiB\", keys = 3 }");
    let large = |key: &str, size: usize| json!({ "action": "set", "key": key, "value": "x", "repeat": size });
    check(&workspace, large("a", 1000), "done");
    let error = refused(&workspace, large("b", 100));
    let line =
        "to allow it, set `storage = { quota = \"2 KiB\", keys = 3 }` in `tools.keep.grants`";
    assert!(error.contains("1001 bytes of 1 KiB are used"), "{error}");
    assert!(error.contains(line), "{error}");
    let many = json!({ "action": "set_many", "keys": ["b", "c", "d"], "value": "" });
    let error = refused(&workspace, many);
    assert!(error.contains("1 of 3 keys are used, and this would need 4"), "{error}");
    check(&workspace, json!({ "action": "list" }), "a");
}

#[test]
fn a_damaged_file_is_named_and_preserved() {
    let workspace = workspace("true");
    check(&workspace, json!({ "action": "set", "key": "a", "value": "1" }), "done");
    let file = file(&workspace);
    for content in ["", "no database"] {
        fs::write(&file, content).unwrap();
        let error = refused(&workspace, json!({ "action": "get", "key": "a" }));
        assert!(error.contains("the storage is damaged"), "{error}");
        assert!(error.contains("/storage.db` is damaged: "), "{error}");
        assert!(error.contains("restore it, or move it away"), "{error}");
        let list = workspace.run(&["storage", "list"]);
        assert_eq!(list.code, 6, "{}", list.shown());
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
}

#[test]
fn two_servers_and_the_command_line_lose_nothing() {
    const AT_ONCE: u64 = 170;
    const CALLS: u64 = 20;
    let workspace = workspace("true");
    let count = |times: u64| json!({ "action": "increment", "key": "n", "count": times });
    let params = json!({ "name": "keep", "arguments": count(AT_ONCE) });
    let [mut one, mut other, mut killed] =
        [(); 3].map(|()| Client::with_handshake(&workspace, json!({})));
    // Calls of one server also run concurrently.
    let send = |server: &mut Client| -> Vec<u64> {
        (0..CALLS).map(|_| server.send("tools/call", params.clone())).collect()
    };
    let (of_one, of_other, of_killed) = (send(&mut one), send(&mut other), send(&mut killed));
    // It is killed in the middle of its calls.
    killed.answer(of_killed[0]);
    killed.kill();
    keep(&workspace, "keep", &count(10_000 - 2 * AT_ONCE * CALLS)).success();
    for (server, ids) in [(&mut one, of_one), (&mut other, of_other)] {
        for id in ids {
            let answer = server.answer(id);
            assert!(answer["result"]["isError"] != json!(true), "{answer}");
        }
    }
    let sum = keep(&workspace, "keep", &json!({ "action": "increment", "key": "n", "delta": 0 }));
    let sum: u64 = sum.success().trim_end().parse().unwrap();
    // All ten thousand, and at least the confirmed calls of the killed process.
    let of_killed = sum - 10_000;
    assert!((AT_ONCE..=AT_ONCE * CALLS).contains(&of_killed), "{of_killed} of what was killed");
}

#[test]
fn invalid_uses_of_the_storage_are_errors() {
    let workspace = workspace("true");
    let is_refused = |arguments: Value, expected: &str| {
        let run = keep(&workspace, "keep", &arguments);
        assert!(run.stderr.contains(expected), "{arguments}: {}", run.shown());
    };
    is_refused(
        json!({ "action": "get", "key": "" }),
        "a key must have 1 to 1024 bytes, but this one has 0",
    );
    let long = json!({ "action": "set", "key": "k", "repeat_key": 10_000_000, "value": "" });
    is_refused(long, "a key must have 1 to 1024 bytes, but this one has 10000000");
    let large = json!({ "action": "set", "key": "k", "value": "x", "repeat": 15_000_000 });
    check(&workspace, large.clone(), "done");
    let same = json!({ "action": "get_many", "key": "k", "count": 10_000 });
    is_refused(same, "the result exceeds 16 MiB");
    let many = json!({ "action": "get_many", "key": "k", "count": 10_001 });
    is_refused(many, "10001 keys in one operation; the limit is 10000");
    let handles = json!({ "action": "handles", "count": 100_000 });
    is_refused(handles, "limit: handles (512 handles): request less at once");
    let list = json!({ "action": "list", "cursor": 9_007_199_254_740_991_u64 });
    check(&workspace, list, "");
    check(&workspace, json!({ "action": "delete", "key": "k" }), "done");
    let full = json!({ "action": "set_many", "key": "k", "value": "", "count": 10_000 });
    check(&workspace, full, "done");
    check(&workspace, json!({ "action": "list" }), "10000 keys");
    is_refused(json!({ "action": "set", "key": "z" }), "10000 of 10000 keys are used");
}

#[test]
fn rendering_a_call_stores_nothing() {
    let workspace = workspace("true");
    let arguments = json!({ "action": "set", "key": "a", "value": "1" }).to_string();
    workspace.run(&["run", "keep", "--format-arguments", "--args", &arguments]).success();
    assert!(!workspace.home().join(".local/state").exists());
}

#[test]
fn people_can_list_and_clear_stored_values() {
    let workspace = workspace("{ quota = \"1MiB\" }");
    let empty = workspace.run(&["storage", "list"]);
    assert_eq!((&*empty.stdout, empty.code), ("", 0), "{}", empty.shown());
    assert!(!workspace.home().join(".local/state").exists(), "looking makes nothing");
    check(&workspace, json!({ "action": "set", "key": "a", "value": "12" }), "done");
    let list = workspace.run(&["storage", "list"]).success();
    assert_eq!(list, "keep  1 key  3 bytes  of 1 MiB, 10000 keys\n");
    let json = workspace.run(&["storage", "list", "--json"]).json();
    let expected =
        json!([{ "tool": "keep", "keys": 1, "bytes": 3, "quota": 1 << 20, "mostKeys": 10_000 }]);
    assert_eq!(json, expected);
    let unsaid = workspace.run(&["storage", "clear", "keep"]);
    assert_eq!(unsaid.code, 2, "{}", unsaid.shown());
    assert!(unsaid.stderr.contains("this removes 1 key of `keep`, 3 bytes; add `--yes`"));
    check(&workspace, json!({ "action": "get", "key": "a" }), "12");
    // Also if the tool is no longer configured.
    workspace.own_config("");
    let list = workspace.run(&["storage", "list"]).success();
    assert_eq!(list, "keep  1 key  3 bytes  no storage is granted\n");
    let removed = workspace.run(&["storage", "clear", "keep", "--yes"]);
    assert!(removed.stderr.contains("removed 1 key of `keep`, 3 bytes"), "{}", removed.shown());
    assert_eq!(workspace.run(&["storage", "list"]).success(), "");
}
