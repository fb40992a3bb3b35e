//! The rules that decide which calls need approval.

use std::fs;

use serde_json::json;

use super::content;
use crate::support::crafted::describing_and_saying;
use crate::support::{Run, Workspace, guest};

fn run(workspace: &Workspace, tool: &str) -> Run {
    workspace.run(&["run", tool, "do=write", "path=a.txt", "text=x"])
}

#[track_caller]
fn check_refused(workspace: &Workspace, tool: &str) -> String {
    let run = run(workspace, tool);
    assert_eq!(run.code, 10, "{}", run.shown());
    assert_eq!(content(workspace, "a.txt"), None);
    run.stderr
}

/// The guest `probe` with a section that declares its approval rule.
fn with_wish(approve: &str) -> Vec<u8> {
    let description = format!("{{\"name\":\"wishing\",\"approve\":{approve}}}");
    let mut content = vec![15];
    content.extend(b"kitbag:describe");
    content.extend(description.as_bytes());
    let mut component = fs::read(guest("probe")).unwrap();
    component.extend([0, u8::try_from(content.len()).unwrap()]);
    component.extend(content);
    component
}

#[test]
fn a_tools_own_approval_rule_adds_to_the_configuration() {
    let workspace = Workspace::new();
    let place = |wish: &str| {
        workspace.file(".kitbag/tools/wishing.wasm", with_wish(wish));
    };
    let writes = "grants.filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n";
    let config = |keys: &str| workspace.config(&format!("[tools.wishing]\n{keys}{writes}"));
    let made = || {
        assert_eq!(run(&workspace, "wishing").code, 0);
        fs::remove_file(workspace.path("a.txt")).unwrap();
    };
    config("");
    // A rule that cannot be parsed is treated as the strictest rule.
    for wish in ["\"always\"", "\"on-write\"", "{\"when\":{\"do\":\"write\"}}", "\"later\"", "7"] {
        place(wish);
        check_refused(&workspace, "wishing");
    }
    place("\"never\"");
    made();
    // It cannot lift other rules, and a workspace cannot lift the tool's rule.
    workspace.own_config("[tools.wishing]\napprove = \"on-write\"\n");
    check_refused(&workspace, "wishing");
    workspace.own_config("");
    place("\"always\"");
    config("approve = \"never\"\n");
    let refused = check_refused(&workspace, "wishing");
    assert!(refused.contains("`approve = \"never\"` under `[tools.wishing]`"), "{refused}");
    // Only the user config can.
    workspace.own_config("[tools.wishing]\napprove = \"never\"\n");
    made();
    workspace.own_config("");
    // If the configuration declares everything that a call needs, the component is not asked before
    // it runs.
    let parameters = "[tools.wishing.parameters]\ndo = {}\npath = {}\ntext = {}\n";
    workspace.config(&format!("[tools.wishing]\ndescription = \"d\"\n{writes}{parameters}"));
    check_refused(&workspace, "wishing");
}

#[test]
fn on_write_trusts_only_declarations_of_built_ins() {
    let workspace = Workspace::with_toolsets(&["files", "memory", "write"]);
    workspace.own_config("[approve]\ndefault = \"on-write\"\n");
    workspace.file("a.txt", "x");
    // A local tool that claims to be read-only, but may write.
    let claims = json!({ "name": "claims", "annotations": { "readOnlyHint": true } }).to_string();
    workspace.file(".kitbag/tools/claims.wasm", describing_and_saying(&claims, "done"));
    let writes = "grants.filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n";
    workspace.config(&format!("[tools.claims]\n{writes}"));
    for (tool, arguments, is_asked) in [
        ("remember", json!({ "text": "a" }), true),
        ("forget", json!({ "ids": [] }), true),
        ("todo", json!({ "action": "list" }), true),
        ("recall", json!({}), false),
        ("list_memories", json!({}), false),
        ("read_file", json!({ "path": "a.txt" }), false),
        ("make_dir", json!({ "path": "d" }), true),
        ("claims", json!({}), true),
    ] {
        let run = workspace.run(&["run", tool, "--args", &arguments.to_string()]);
        let expected = if is_asked { 10 } else { 0 };
        assert_eq!(run.code, expected, "{tool}: {}", run.shown());
    }
}

#[test]
fn prompts_and_resources_of_such_a_tool_need_approval() {
    use serde_json::json;

    use crate::support::mcp::Client;
    let workspace = Workspace::new();
    let wasm = guest("conformance");
    workspace.own_config(&format!(
        "[tools.conformance]\nsource = \"local\"\nwasm = {wasm:?}\napprove = \"always\"\n"
    ));
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    // Listed after the component has been compiled.
    let mut find = |method: &str, list: &str, key: &str, value: &str| loop {
        let listed = client.request(method, json!({}))["result"][list].clone();
        let all = listed.as_array().unwrap();
        if let Some(found) = all.iter().find(|one| one[key] == value || value.is_empty()) {
            return found[key].clone();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let name = find("prompts/list", "prompts", "name", "test_simple_prompt");
    let uri = find("resources/list", "resources", "uri", "");
    let id = client.send("prompts/get", json!({ "name": name }));
    let asked = client.reply("elicitation/create", json!({ "action": "decline" }));
    let message = asked["message"].as_str().unwrap();
    assert!(message.starts_with("Call of `conformance` ("), "{message}");
    let answer = client.answer(id);
    assert!(answer["error"]["message"].as_str().unwrap().contains("was not approved"), "{answer}");
    let id = client.send("resources/read", json!({ "uri": uri }));
    client.reply("elicitation/create", json!({ "action": "decline" }));
    let answer = client.answer(id);
    assert!(answer["error"]["message"].as_str().unwrap().contains("was not approved"), "{answer}");
}
