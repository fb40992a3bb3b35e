//! Many tools: the first list, the search, and calls through `call_tool`.

#[path = "../../../../tests/discovery/corpus.rs"]
mod corpus;

use std::sync::Arc;

use kitbag_config::{Sources, load};
use kitbag_contract::{Outcome, ToolDescription};
use kitbag_host::{Host, HostOptions};
use kitbag_secrets::Secrets;
use kitbag_toolbox::discovery::estimated_tokens;
use kitbag_toolbox::{NativeCall, NativeTool, Toolbox};
use serde_json::{Value, json};

use super::client::{Client, texts};
use super::native_tools::{NoSecrets, Probe};
use crate::Server;

/// A tool that returns its own name.
struct Named(corpus::CorpusTool);

impl NativeTool for Named {
    fn description(&self) -> ToolDescription {
        ToolDescription {
            name: self.0.name.clone(),
            title: self.0.title.clone(),
            description: Some(self.0.description.clone()),
            input_schema: Some(self.0.input_schema.clone()),
            ..ToolDescription::default()
        }
    }

    fn call<'a>(
        &'a self,
        _: NativeCall<'a>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        Box::pin(async { Outcome::Success(self.0.name.clone()) })
    }
}

/// Creates a toolbox with the tool `probe` and this user config.
pub(super) fn toolbox(config: &str) -> Toolbox {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let start = directory.path().to_owned();
    let config = load(&Sources { start, user_file: Some(file), ..Sources::default() }).unwrap();
    let secrets = Arc::new(Secrets::new(NoSecrets, Vec::new()));
    let host = Host::new(HostOptions::default());
    Toolbox::new(host, config, &[], secrets, None).with_tool(Arc::new(Probe)).unwrap()
}

pub(super) fn serve(toolbox: Toolbox) -> Server {
    let reload = toolbox.clone();
    Server::new(toolbox, Box::new(move || Ok(reload.clone())), None).unwrap()
}

/// Adds the tools of the corpus whose id a filter accepts.
fn with_corpus(mut toolbox: Toolbox, is_wanted: impl Fn(&str) -> bool) -> Toolbox {
    for tool in corpus::tools().into_iter().filter(|tool| is_wanted(&tool.id)) {
        toolbox = toolbox.with_tool(Arc::new(Named(tool))).unwrap();
    }
    toolbox
}

/// Creates a client of each era, each with its own server, which ends with its client.
pub(super) fn both_eras(toolbox: &Toolbox, capabilities: &Value) -> [Client; 2] {
    let start = || Client::start(serve(toolbox.clone()));
    [start().after_handshake(capabilities.clone()), start().stateless(capabilities.clone())]
}

fn listed(client: &mut Client) -> Vec<Value> {
    client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn tool(client: &mut Client, name: &str, arguments: Value) -> Value {
    client.request("tools/call", json!({ "name": name, "arguments": arguments }))
}

fn found(client: &mut Client, query: &str) -> String {
    let answer = tool(client, "find_tools", json!({ "query": query }));
    texts(&answer["result"])[0].to_owned()
}

#[test]
fn the_first_list_of_many_tools_is_short() {
    let is_wanted = |id: &str| questions_need(id) || id.len() % 5 < 3;
    let toolbox = with_corpus(toolbox("[serve]\npinned = [\"github_create_issue\"]\n"), is_wanted);
    let count = toolbox.known_tools().count();
    assert!(count >= 1_000, "{count}");
    for mut client in both_eras(&toolbox, &json!({})) {
        let tools = listed(&mut client);
        assert_eq!(names(&tools), ["call_tool", "find_tools", "github_create_issue"]);
        assert!(tools.iter().all(|tool| tool["_meta"]["anthropic/alwaysLoad"] == true));
        let tokens = estimated_tokens(&serde_json::to_string(&tools).unwrap());
        assert!(tokens < 2_000, "{tokens}");
        let text = found(&mut client, "kuberntes pod logs");
        let first = text.lines().next().unwrap();
        assert_eq!(first, "k8s_get_pod_logs(namespace: string, pod?: string, tail?: string)");
        assert!(estimated_tokens(&text) < 600, "{text}");
        let call = json!({ "name": "k8s_get_pod_logs", "arguments": { "namespace": "a" } });
        let called = tool(&mut client, "call_tool", call);
        assert_eq!(texts(&called["result"]), ["k8s_get_pod_logs"]);
        // A tool that is not listed can be called by its name.
        let called = tool(&mut client, "k8s_get_pod_logs", json!({ "namespace": "a" }));
        assert_eq!(texts(&called["result"]), ["k8s_get_pod_logs"]);
    }
}

fn questions_need(id: &str) -> bool {
    corpus::questions().iter().any(|(_, tools)| tools.contains(&id))
}

#[test]
fn the_mode_and_the_budget_choose_the_list() {
    let github = |id: &str| id.starts_with("github_");
    for (config, is_short) in [
        ("", false),
        ("[serve]\ntool_tokens = 500\n", true),
        ("[serve]\ndiscovery = \"search\"\n", true),
        ("[serve]\ndiscovery = \"all\"\ntool_tokens = 500\n", false),
    ] {
        let server = serve(with_corpus(toolbox(config), github));
        let mut client = Client::start(server).after_handshake(json!({}));
        let tools = listed(&mut client);
        let expected = ["call_tool", "find_tools"];
        assert_eq!(names(&tools) == expected, is_short, "{config}: {:?}", names(&tools));
        let answer = tool(&mut client, "find_tools", json!({ "query": "issue" }));
        assert_eq!(answer.get("result").is_some(), is_short, "{config}: {answer}");
    }
}

#[test]
fn hints_are_in_the_list() {
    let config = "[serve]\nresult_size = \"32KiB\"\n[approve]\ndefault = \"always\"\n";
    let mut client = Client::start(serve(toolbox(config))).after_handshake(json!({}));
    let meta = &listed(&mut client)[0]["_meta"];
    assert_eq!(meta["anthropic/maxResultSizeChars"], 32 << 10);
    assert_eq!(meta["anthropic/requiresUserInteraction"], true);
    assert!(meta.get("anthropic/alwaysLoad").is_none());
}

#[test]
fn hidden_tools_are_neither_found_nor_called() {
    let github = |id: &str| id.starts_with("github_");
    let server = serve(with_corpus(toolbox("[serve]\ndiscovery = \"search\"\n"), github));
    let mut client = Client::start(server.clone()).after_handshake(json!({}));
    assert!(found(&mut client, "create an issue").contains("github_create_issue"));
    let toolbox = server.generation().toolbox.clone();
    server.set_toolbox(toolbox.for_person(None));
    for query in ["create an issue", "github_create_issue"] {
        assert!(!found(&mut client, query).contains("github_create_issue("), "{query}");
        assert!(!found(&mut client, query).contains("Arguments:"), "{query}");
    }
    let arguments = json!({ "owner": "a" });
    let direct = tool(&mut client, "github_create_issue", arguments.clone());
    let call = json!({ "name": "github_create_issue", "arguments": arguments });
    let through = tool(&mut client, "call_tool", call);
    assert_eq!(direct["error"]["code"], -32602, "{direct}");
    assert_eq!(direct["error"], through["error"]);
}

#[test]
fn calls_through_call_tool_are_calls_of_the_tool() {
    let toolbox = toolbox("[serve]\ndiscovery = \"search\"\n");
    for mut client in both_eras(&toolbox, &json!({})) {
        for arguments in [
            json!({ "do": "echo", "text": "a" }),
            json!({ "do": "fail", "transient": true }),
            json!({ "do": 1.50, "number": "x" }),
            json!({}),
        ] {
            let direct = tool(&mut client, "probe", arguments.clone());
            let call = json!({ "name": "probe", "arguments": arguments });
            let through = tool(&mut client, "call_tool", call);
            assert_eq!(direct["result"], through["result"], "{direct}");
        }
        // A client without forms receives directions for passing answers.
        let call = json!({ "name": "probe", "arguments": { "do": "ask" } });
        let asked = tool(&mut client, "call_tool", call);
        assert!(texts(&asked["result"])[0].contains("_answers"), "{asked}");
        let arguments = json!({ "do": "ask", "_answers": { "go-on": true } });
        for call in [
            json!({ "name": "probe", "arguments": arguments.clone() }),
            json!({ "name": "probe", "arguments": { "do": "ask" }, "_answers": { "go-on": true } }),
            json!({ "name": "probe", "arguments": arguments.to_string() }),
        ] {
            let answered = tool(&mut client, "call_tool", call);
            assert_eq!(texts(&answered["result"]), [r#"{"go-on":true}"#], "{answered}");
        }
        for (call, part) in [
            (json!({}), "needs the `name`"),
            (json!({ "name": "call_tool" }), "cannot call itself"),
            (json!({ "name": "probe", "arguments": "x" }), "must be an object"),
            (json!({ "name": "probe", "do": "echo" }), "has no argument `do`"),
        ] {
            let refused = tool(&mut client, "call_tool", call);
            assert_eq!(refused["result"]["isError"], true);
            assert!(texts(&refused["result"])[0].contains(part), "{refused}");
        }
    }
}

#[test]
fn questions_within_call_tool_are_asked() {
    let toolbox = toolbox("[serve]\ndiscovery = \"search\"\n");
    let [mut session, mut stateless] = both_eras(&toolbox, &json!({ "elicitation": {} }));
    let call = json!({ "name": "probe", "arguments": { "do": "ask" } });
    let params = json!({ "name": "call_tool", "arguments": call });
    let accepted = json!({ "action": "accept", "content": { "go-on": true } });
    let id = session.send("tools/call", params.clone());
    session.reply(accepted.clone());
    assert_eq!(texts(&session.answer(id)["result"]), [r#"{"go-on":true}"#]);
    let asked = stateless.request("tools/call", params.clone());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut again = params;
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({ "go-on": accepted });
    let answered = stateless.request("tools/call", again);
    assert_eq!(texts(&answered["result"]), [r#"{"go-on":true}"#], "{answered}");
}

#[test]
fn own_names_differ_from_those_of_tools() {
    let mut tool_of_name = corpus::tools().swap_remove(0);
    tool_of_name.name = "find_tools".into();
    let toolbox = toolbox("[serve]\ndiscovery = \"search\"\n");
    let toolbox = toolbox.with_tool(Arc::new(Named(tool_of_name))).unwrap();
    let mut client = Client::start(serve(toolbox)).after_handshake(json!({}));
    assert_eq!(names(&listed(&mut client)), ["call_tool", "kitbag_find_tools"]);
    let called = tool(&mut client, "find_tools", json!({ "query": "x" }));
    let text = called.to_string();
    assert!(!text.contains("No tool fits"), "{text}");
}

#[test]
fn find_tools_answers_with_definitions() {
    let github = |id: &str| id.starts_with("github_");
    let server = serve(with_corpus(toolbox("[serve]\ndiscovery = \"search\"\n"), github));
    let mut client = Client::start(server).after_handshake(json!({}));
    let full = found(&mut client, "github_fork_repository");
    assert!(full.contains("Arguments: {\"type\":\"object\",\"properties\":{\"owner\""), "{full}");
    assert!(found(&mut client, "zzzzzzzz").starts_with("No tool fits"));
    let text = |arguments: Value, client: &mut Client| {
        let answer = tool(client, "find_tools", arguments);
        (answer["result"]["isError"] == true, texts(&answer["result"])[0].to_owned())
    };
    let (_, hits) = text(json!({ "query": "issue", "limit": 2 }), &mut client);
    assert_eq!(hits.lines().filter(|line| line.starts_with("github_")).count(), 2, "{hits}");
    for arguments in [json!({}), json!({ "query": " " }), json!({ "query": "x", "limit": 21 })] {
        assert!(text(arguments, &mut client).0);
    }
}
