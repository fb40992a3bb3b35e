//! Who says before which calls a person is asked.

use std::fs;

use serde_json::json;

use super::{content, probe, workspace};
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

/// The guest `probe` with a section in which it says of itself when it wants to be asked about.
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
fn a_workspace_does_not_lower_what_the_users_own_file_says() {
    let workspace = workspace("\"always\"");
    workspace.config("[tools.probe]\napprove = \"never\"\n");
    check_refused(&workspace, "probe");
    // Nor by another name for the same tool.
    let wasm = guest("probe");
    workspace.config(&format!(
        "[tools.other]\nsource = \"local\"\nwasm = {wasm:?}\napprove = \"never\"\n\
         grants.filesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"rw\" }}]\n"
    ));
    let refused = check_refused(&workspace, "other");
    assert!(
        refused.contains("`approve = \"never\"` under `[tools.other]` in <home>/"),
        "{refused}"
    );
}

#[test]
fn a_workspace_has_more_calls_asked_about_and_the_message_names_its_line() {
    let workspace = workspace("\"never\"");
    assert_eq!(run(&workspace, "probe").code, 0);
    fs::remove_file(workspace.path("a.txt")).unwrap();
    workspace.config("[tools.probe]\napprove = \"always\"\n");
    let refused = check_refused(&workspace, "probe");
    let advice = "To allow it without a question, remove `approve` at .kitbag/config.toml:2:11\n";
    assert!(refused.contains(advice), "{refused}");
}

#[test]
fn what_a_tool_says_of_itself_adds_to_the_configuration() {
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
    // What cannot be read is the strictest.
    for wish in ["\"always\"", "\"on-write\"", "{\"when\":{\"do\":\"write\"}}", "\"later\"", "7"] {
        place(wish);
        check_refused(&workspace, "wishing");
    }
    place("\"never\"");
    made();
    // It takes nothing away, and neither does a workspace from what it says.
    workspace.own_config("[tools.wishing]\napprove = \"on-write\"\n");
    check_refused(&workspace, "wishing");
    workspace.own_config("");
    place("\"always\"");
    config("approve = \"never\"\n");
    let refused = check_refused(&workspace, "wishing");
    assert!(refused.contains("`approve = \"never\"` under `[tools.wishing]`"), "{refused}");
    // Only the person does.
    workspace.own_config("[tools.wishing]\napprove = \"never\"\n");
    made();
    workspace.own_config("");
    // Where configuration says all that a call needs, the component is not asked before it runs.
    let parameters = "[tools.wishing.parameters]\ndo = {}\npath = {}\ntext = {}\n";
    workspace.config(&format!("[tools.wishing]\ndescription = \"d\"\n{writes}{parameters}"));
    check_refused(&workspace, "wishing");
}

#[test]
fn on_write_trusts_the_declarations_of_built_ins_alone() {
    let workspace = Workspace::with_toolsets(&["files", "memory", "write"]);
    workspace.own_config("[approve]\ndefault = \"on-write\"\n");
    workspace.file("a.txt", "x");
    // A local tool that claims to change nothing, and may.
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
fn a_script_says_it_in_its_header() {
    let workspace = Workspace::with_toolsets(&["python"]);
    let script = "# /// kitbag\n# approve = \"always\"\n# ///\n1 + 1\n";
    workspace.file(".kitbag/scripts/sum.py", script);
    let refused = workspace.run(&["run", "sum"]);
    assert_eq!(refused.code, 10, "{}", refused.shown());
    assert!(refused.stderr.contains("remove `approve` at .kitbag/scripts/sum.py:2:13"));
    assert_eq!(workspace.run(&["run", "sum", "--approve"]).success(), "2\n");
}

#[test]
fn a_prompt_or_a_resource_of_such_a_tool_is_asked_about_too() {
    use serde_json::json;

    use crate::support::mcp::Client;
    let workspace = Workspace::new();
    let wasm = guest("conformance");
    workspace.own_config(&format!(
        "[tools.conformance]\nsource = \"local\"\nwasm = {wasm:?}\napprove = \"always\"\n"
    ));
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    // Known when the component has been compiled.
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

#[test]
fn the_table_of_a_probe_without_a_rule_asks_nobody() {
    let workspace = Workspace::new();
    workspace.own_config(&probe(""));
    assert_eq!(run(&workspace, "probe").code, 0);
    assert_eq!(super::logged(&workspace), Vec::<String>::new());
}

#[test]
fn a_rule_decides_on_questions_of_a_class_whatever_answers_are_set() {
    let workspace = Workspace::new();
    let own = |classes: &str| {
        workspace.own_config(&format!(
            "[approve.classes]\n{classes}{}[tools.probe.answers]\ngo-on = true\n",
            probe("")
        ));
    };
    let ask = |class: &str| {
        let kind = format!("answer_type={{\"boolean\":{{}},\"class\":\"{class}\"}}");
        workspace.run(&["run", "probe", "do=ask", &kind])
    };
    own("");
    assert_eq!(ask("db:drop").success(), "ask: {\"go-on\":true}\n");
    own("\"db:drop\" = \"deny\"\n");
    let denied = ask("DB:drop");
    assert_eq!((denied.code, &*denied.stdout), (10, ""), "{}", denied.shown());
    assert_eq!(
        denied.stderr,
        "error: the call of `probe` was not approved: `DB:drop` is denied \
         (<home>/.config/kitbag/config.toml:2:13); the tool did not go on\n"
    );
    assert_eq!(ask("db:list").success(), "ask: {\"go-on\":true}\n");
    own("\"db:*\" = \"ask\"\n\"*\" = \"ask\"\n\"db:drop\" = \"deny\"\n");
    assert_eq!(ask("db:drop").code, 10, "the strictest counts");
    let asked = ask("db:list");
    assert_eq!(asked.code, 3, "{}", asked.shown());
    assert!(asked.stderr.contains("a person consents"), "{}", asked.shown());
    let (stdout, _) = crate::support::terminal::on_a_terminal(
        &workspace,
        &["run", "probe", "do=ask", "answer_type={\"boolean\":{},\"class\":\"db:list\"}"],
        "no\n",
    );
    assert_eq!(stdout, "ask: {\"go-on\":false}\n");
    own("\"no class\" = \"deny\"\n");
    let wrong = ask("a");
    assert_eq!(wrong.code, 4);
    assert!(
        wrong.stderr.contains("config.toml:2:1: `no class` is no class: "),
        "{}",
        wrong.shown()
    );
}

#[test]
fn a_class_is_meant_in_any_case_and_no_name_near_it_is() {
    let workspace = Workspace::new();
    let own = |rules: &str| {
        let answers = "[tools.probe.answers]\ngo-on = true\n";
        workspace.own_config(&format!("[approve.classes]\n{rules}{}{answers}", probe("")));
    };
    let ask =
        |kind: &str| workspace.run(&["run", "probe", "do=ask", &format!("answer_type={kind}")]);
    let of_class = |class: &str| ask(&json!({ "boolean": {}, "class": class }).to_string());
    for rule in ["\"db:drop\" = \"deny\"\n", "\"DB:Drop\" = \"deny\"\n", "\"dB:*\" = \"deny\"\n"] {
        own(rule);
        for class in ["db:drop", "DB:DROP", "Db:dRop"] {
            assert_eq!(of_class(class).code, 10, "{rule}: {class}");
        }
    }
    // A class that differs in one letter is not denied; what is no class ends the call.
    own("\"db:drop\" = \"deny\"\n");
    for class in ["db:drop2", "db:dro", "db.drop", "db:drop:", "xdb:drop", "db"] {
        assert_eq!(of_class(class).success(), "ask: {\"go-on\":true}\n", "{class}");
    }
    for class in
        ["db:drop ", " db:drop", "db:dr\u{43e}p", "db:drop\u{200b}", "db:drop\n", "db:*", "*"]
    {
        let run = of_class(class);
        assert_eq!((run.code, &*run.stdout), (7, ""), "{class:?}: {}", run.shown());
    }
    // A tool that says nothing of what it is about is stopped by no class, but by `approve`.
    assert_eq!(ask("boolean").success(), "ask: {\"go-on\":true}\n");
    assert_eq!(of_class("db:list").success(), "ask: {\"go-on\":true}\n");
    own("\"*\" = \"deny\"\n");
    assert_eq!(of_class("db:list").code, 10);
    assert_eq!(ask("boolean").success(), "ask: {\"go-on\":true}\n");
}
