//! Inner calls that a tool makes.

use serde_json::{Value, json};

use super::{content, probe, write};
use crate::support::mcp::Client;
use crate::support::terminal::on_a_terminal;
use crate::support::{Workspace, guest};

/// The tools `relay`, which calls other tools as its arguments specify, and `probe`, whose writes
/// need approval.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.own_config(&format!(
        "{}[tools.relay]\nsource = \"local\"\nwasm = {:?}\n\
         grants.filesystem = []\ngrants.tools = {{ probe = \"probe\" }}\n",
        probe("approve = { when = { do = \"write\" } }\n"),
        guest("relay")
    ));
    workspace
}

fn step(arguments: &Value) -> Value {
    json!({ "call": { "tool": "probe", "arguments": arguments } })
}

fn start(arguments: &Value) -> Value {
    json!({ "start": { "tool": "probe", "arguments": arguments } })
}

fn steps(steps: &[Value]) -> String {
    json!({ "steps": steps }).to_string()
}

#[test]
fn approving_a_direct_call_does_not_approve_inner_calls() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    let accept = |answer: &str| json!({ "action": "accept", "content": { "approve": answer } });
    let mut call = |tool: &str, arguments: Value, answer: &str| {
        let id = client.send("tools/call", json!({ "name": tool, "arguments": arguments }));
        client.reply("elicitation/create", accept(answer));
        client.answer(id)["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let arguments = write("a.txt", "1");
    assert_eq!(call("probe", arguments.clone(), "always"), "write a.txt: 1 byte");
    let inner = json!({ "steps": [step(&arguments)] });
    assert!(call("relay", inner.clone(), "no").starts_with("error the call of `probe`"));
    assert_eq!(call("relay", inner.clone(), "always"), "ok write a.txt: 1 byte");
    let result = client.call("relay", inner);
    assert_eq!(result["content"][0]["text"], "ok write a.txt: 1 byte", "{result}");
}

#[test]
fn waiting_calls_are_shown_together_and_answered_separately() {
    let workspace = workspace();
    let three = ["a", "b", "c"].map(|name| start(&write(&format!("{name}.txt"), name)));
    let all = steps(&[&three[..], &[json!("finish")]].concat());
    let (stdout, shown) =
        on_a_terminal(&workspace, &["run", "relay", "--args", &all], "yes\nno\nyes\n");
    let waiting = |name: &str| {
        format!("  probe {{\"do\":\"write\",\"path\":\"{name}.txt\",\"text\":\"{name}\"}}")
    };
    let lists = |text: &str| shown.contains(text);
    assert!(
        lists(&format!("2 more calls wait for approval:\n{}\n{}", waiting("b"), waiting("c"))),
        "{shown}"
    );
    assert!(lists(&format!("1 more call waits for approval:\n{}", waiting("c"))), "{shown}");
    assert_eq!(shown.matches("Allow this call of `probe`? ").count(), 3, "{shown}");
    let mut said: Vec<_> = stdout.lines().collect();
    said.sort_unstable();
    assert_eq!(
        said,
        [
            "error the call of `probe` was not approved: the user declined; nothing was done",
            "ok write a.txt: 1 byte",
            "ok write c.txt: 1 byte",
        ]
    );
    let contents = ["a.txt", "b.txt", "c.txt"].map(|path| content(&workspace, path));
    assert_eq!(contents, [Some("a".into()), None, Some("c".into())]);
}

#[test]
fn a_stateless_client_sends_each_inner_answer_once() {
    let workspace = workspace();
    let mut client = Client::stateless(&workspace, json!({ "elicitation": {} }));
    let arguments = json!({ "steps": [step(&write("a.txt", "1"))] });
    let call = json!({ "name": "relay", "arguments": arguments });
    let answer = client.request("tools/call", call.clone());
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    let (id, _) = requests.iter().next().unwrap();
    assert!(id.starts_with("0/probe/kitbag/approve/"), "{id}");
    let mut resume = call.clone();
    resume["requestState"] = answer["result"]["requestState"].clone();
    resume["inputResponses"] =
        json!({ id: { "action": "accept", "content": { "approve": "yes" } } });
    let done = client.request("tools/call", resume.clone());
    assert_eq!(done["result"]["content"][0]["text"], "ok write a.txt: 1 byte", "{done}");
    std::fs::remove_file(workspace.path("a.txt")).unwrap();
    let again = client.request("tools/call", resume.clone());
    assert!(again.get("error").is_some(), "what it had made is gone: {again}");
    // Without the state the question is a different one.
    resume.as_object_mut().unwrap().remove("requestState");
    let again = client.request("tools/call", resume);
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert_eq!(content(&workspace, "a.txt"), None);
}

#[test]
fn a_model_and_presets_do_not_answer_for_inner_calls() {
    let workspace = workspace();
    let mut client = Client::stateless(&workspace, json!({}));
    for id in ["0/probe/kitbag/approve/0", "0/probe/approve", "0/probe/kitbag/ticket"] {
        let arguments = json!({
            "steps": [step(&write("a.txt", "1"))],
            "_answers": { id: "yes" },
        });
        let result = client.call("relay", arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("error the call of `probe` needs the approval"), "{text}");
    }
    assert_eq!(content(&workspace, "a.txt"), None);
}
