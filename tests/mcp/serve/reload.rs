//! Files that change while the server runs.

use std::fs;

use serde_json::{Value, json};

use super::texts;
use crate::support::mcp::Client;
use crate::support::{Workspace, guest, probe};

fn names(client: &mut Client) -> Vec<String> {
    let list = client.request("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until these are the tools. A list may change more than once meanwhile: when a tool has
/// described itself, or an editor writes a file in two steps.
#[track_caller]
fn wait_for_names(client: &mut Client, expected: &[&str]) {
    loop {
        client.notification("notifications/tools/list_changed");
        if names(client) == expected {
            return;
        }
    }
}

#[test]
fn an_edited_configuration_is_seen_with_a_handshake() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::with_handshake(&workspace, json!({}));
    assert_eq!(names(&mut client), ["learn", "probe"]);
    let twice = format!("{}\n{}", probe(""), probe("").replace("tools.probe", "tools.probe_two"));
    workspace.config(&twice);
    wait_for_names(&mut client, &["learn", "probe", "probe_two"]);
    let answer = client.call("probe_two", json!({ "do": "echo", "text": "new" }));
    assert_eq!(texts(&answer), ["new"]);
}

#[test]
fn an_edited_configuration_is_seen_by_subscribers() {
    let workspace = Workspace::with_probe("");
    let mut client = Client::stateless(&workspace, json!({}));
    assert_eq!(names(&mut client), ["learn", "probe"]);
    let filter = json!({ "toolsListChanged": true });
    client.send("subscriptions/listen", json!({ "notifications": filter }));
    client.notification("notifications/subscriptions/acknowledged");
    fs::remove_file(workspace.path(".kitbag/config.toml")).unwrap();
    wait_for_names(&mut client, &["learn"]);
}

#[test]
fn a_broken_edit_turns_off_its_tool_and_is_logged() {
    let workspace = Workspace::new();
    let two = |other: &str| {
        let other = probe("").replace("tools.probe", "tools.other").replace("\"local\"", other);
        workspace.config(&format!("{}\n{other}", probe("")));
    };
    two("\"local\"");
    let mut client = Client::with_handshake(&workspace, json!({}));
    assert_eq!(names(&mut client), ["learn", "other", "probe"]);
    two("\"lokal\"");
    wait_for_names(&mut client, &["learn", "probe"]);
    let logged = client.logged("lokal");
    assert!(logged.contains("(the tool `other` is off"), "{logged}");
    let params = json!({ "name": "other", "arguments": { "do": "echo", "text": "x" } });
    let refused = client.request("tools/call", params);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("broken: .kitbag/config.toml:7:10: "), "{message}");
    let answer = client.call("probe", json!({ "do": "echo", "text": "still" }));
    assert_eq!(texts(&answer), ["still"]);
    // If the file is not valid TOML, the tools of the workspace are disabled.
    workspace.config("[tools.probe\n");
    wait_for_names(&mut client, &["learn"]);
    client.logged("unclosed table");
    two("\"local\"");
    wait_for_names(&mut client, &["learn", "other", "probe"]);
}

#[test]
fn a_running_call_keeps_its_configuration() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    );
    let mut client = Client::with_handshake(&workspace, json!({}));
    names(&mut client);
    let arguments = json!({ "do": "gather", "path": "here", "until": "go" });
    let id = client.send("tools/call", json!({ "name": "probe", "arguments": arguments }));
    while !workspace.path("here").exists() {
        std::thread::yield_now();
    }
    workspace.config("");
    wait_for_names(&mut client, &["learn"]);
    workspace.file("go", "");
    assert_eq!(texts(&client.answer(id)["result"]), ["gather here: let go"]);
}

#[test]
fn a_rebuilt_tool_is_loaded_again() {
    let workspace = Workspace::new();
    workspace.config("");
    let wasm = workspace.file(".kitbag/tools/tool.wasm", fs::read(guest("stranger")).unwrap());
    let mut client = Client::with_handshake(&workspace, json!({}));
    let before = client.call("tool", json!({}));
    let new = workspace.path(".kitbag/tools/tool.new");
    fs::copy(guest("probe"), &new).unwrap();
    fs::rename(&new, &wasm).unwrap();
    let after = client.call("tool", json!({ "do": "echo", "text": "probe now" }));
    assert_ne!(before, after);
    assert_eq!(texts(&after), ["probe now"]);
}

#[test]
fn the_component_of_a_removed_tool_is_unloaded() {
    let workspace = Workspace::new();
    // The code of a built-in tool would be loaded meanwhile.
    let off = "[toolsets]\nlearn = false\n";
    workspace.config(&format!("{off}{}", probe("")));
    let mut client = Client::with_handshake(&workspace, json!({}));
    names(&mut client);
    let code = |client: &Client| {
        let maps = fs::read_to_string(format!("/proc/{}/maps", client.process_id())).unwrap();
        maps.lines().filter(|line| line.contains(" r-x")).count()
    };
    let before = code(&client);
    client.call("probe", json!({ "do": "echo", "text": "x" }));
    assert!(code(&client) > before);
    workspace.config(off);
    wait_for_names(&mut client, &[]);
    assert_eq!(code(&client), before);
}

#[test]
fn new_documents_are_announced_and_listed() {
    let workspace = Workspace::new();
    workspace.file("notes/a.md", "A\n");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    let uris = |client: &mut Client| {
        let list = client.request("resources/list", json!({}));
        let resources = list["result"]["resources"].as_array().unwrap().clone();
        resources.iter().map(|resource| resource["uri"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(uris(&mut client), ["kb://team/a"]);
    workspace.file("notes/deep/b.md", "B\n");
    // The directory may be noticed before the document in it.
    loop {
        client.notification("notifications/resources/list_changed");
        if uris(&mut client) == ["kb://team/a", "kb://team/deep/b"] {
            break;
        }
    }
}

#[test]
fn a_link_out_of_a_topic_is_not_watched() {
    let workspace = Workspace::new();
    for number in 0..100 {
        fs::create_dir_all(workspace.outside().join(format!("other/{number}"))).unwrap();
    }
    workspace.file("notes/deep/a.md", "A\n");
    for (link, target) in [("out", "../../other"), ("proc", "/proc/self"), ("up", "..")] {
        std::os::unix::fs::symlink(target, workspace.path("notes").join(link)).unwrap();
    }
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    client.request("resources/list", json!({}));
    // When this change is noticed, all watches have handled their events.
    workspace.file("notes/b.md", "B\n");
    client.notification("notifications/resources/list_changed");
    workspace.file("notes/deep/c.md", "C\n");
    client.notification("notifications/resources/list_changed");
    // At most the root, `.kitbag`, the directories of the cache or the component, and the two
    // directories of the topic.
    assert!(client.watches() <= 8, "{}", client.watches());
}

#[test]
fn watches_are_bounded_with_one_warning() {
    let workspace = Workspace::new();
    for number in 0..4_200 {
        fs::create_dir_all(workspace.path(&format!("notes/{number}"))).unwrap();
    }
    workspace.file("notes/a.md", "A\n");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    let mut client = Client::with_handshake(&workspace, json!({}));
    client.request("resources/list", json!({}));
    for name in ["b", "c"] {
        workspace.file(&format!("notes/{name}.md"), "B\n");
        client.notification("notifications/resources/list_changed");
    }
    assert!((4_000..=4_110).contains(&client.watches()), "{}", client.watches());
    let (_, stderr) = client.close();
    assert_eq!(stderr.matches("more than 4096 directories").count(), 1, "{stderr}");
}
