//! Tools of a server inside the test's process.

use std::sync::Arc;

use kitbag_contract::{Content, ErrorKind, Outcome, Resource, ResourceBody};
use kitbag_host::Host;
use kitbag_policy::SecretName;
use kitbag_policy::server::{ServerAddress, ServerName, ServerProcess};
use kitbag_secrets::SecretValue;
use kitbag_servers::{Connect, Link, Servers, ServersOptions};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

use super::fake::{Fake, Person};
use crate::{CallOutcome, Invocation, NativeCall};

/// A server that says what it is given, asks for a name, and counts its starts.
struct Talker;

impl Connect for Talker {
    fn connect(
        &self,
        _: &ServerName,
        _: &ServerProcess,
        _: &[(SecretName, Arc<SecretValue>)],
    ) -> Result<Link, String> {
        let (client, server) = duplex(64 << 10);
        tokio::spawn(talk(server));
        let (read, write) = split(client);
        Ok(Link { read: Box::new(read), write: Box::new(write), process: None })
    }
}

async fn talk(stream: DuplexStream) {
    let (read, mut write) = split(stream);
    let mut lines = BufReader::new(read).lines();
    let mut open = Value::Null;
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
        let arguments = &message["params"]["arguments"];
        let (id, result) = match message["method"].as_str() {
            Some("initialize") => (
                message["id"].clone(),
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "talker", "version": "1" },
                }),
            ),
            Some("tools/list") => {
                (message["id"].clone(), json!({ "tools": [tool("say"), tool("ask")] }))
            }
            Some("tools/call") if message["params"]["name"] == "ask" => {
                open = message["id"].clone();
                let field = json!({ "name": { "type": "string" } });
                let schema = json!({ "type": "object", "properties": field, "required": ["name"] });
                let params =
                    json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
                let method = "elicitation/create";
                let asks = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
                write.write_all(format!("{asks}\n").as_bytes()).await.unwrap();
                continue;
            }
            Some("tools/call") => {
                (message["id"].clone(), text(arguments["say"].as_str().unwrap_or("nothing")))
            }
            Some("resources/read") => {
                let uri = &message["params"]["uri"];
                let contents = json!([{ "uri": uri, "text": "a note" }]);
                (message["id"].clone(), json!({ "contents": contents }))
            }
            Some("server/discover") => {
                let error = json!({ "code": -32601, "message": "unknown" });
                let refused = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                write.write_all(format!("{refused}\n").as_bytes()).await.unwrap();
                continue;
            }
            None => (open.take(), text(&message["result"]["content"]["name"].to_string())),
            Some(_) => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

/// A toolbox with the tools `talker_say` and `talker_ask`.
fn fake() -> Fake {
    let mut fake = Fake::new();
    let connect: Arc<dyn Connect> = Arc::new(Talker);
    let options = ServersOptions { connect: Some(connect), ..ServersOptions::default() };
    let toolbox = fake.toolbox.with_servers(Servers::new(options));
    let process = ServerProcess::new("talker", "/");
    let address = Arc::new(ServerAddress::Process(process));
    let target = toolbox.target_of(&ServerName::new("talker").unwrap(), address);
    let listing = Host::block_on(|| toolbox.list_server(&target)).unwrap().unwrap();
    fake.toolbox = toolbox.with_server_tools(&target, &listing).unwrap().0;
    fake
}

#[test]
fn server_tools_run_through_the_pipeline() {
    let fake = fake();
    let say = |arguments| fake.say("talker_say", arguments, &mut Person::default());
    assert_eq!(say(json!({ "say": "hi" })), "hi");
    assert_eq!(say(json!({ "say": "again" })), "again");
    let audit = fake.audit();
    assert_eq!(audit[0], "start talker_say");
    assert_eq!(audit[1], "call talker_say by program test: success");
}

#[test]
fn server_tools_are_untrusted_and_may_change_anything() {
    let tool = fake().toolbox.tool("talker_say").unwrap();
    assert_eq!(tool.annotations.read_only_hint, Some(false));
    assert_eq!(tool.annotations.open_world_hint, Some(true));
}

#[test]
fn a_question_suspends_the_open_call() {
    let fake = fake();
    let mut person = Person::typing(&[r#"{"name":"Ada"}"#]);
    assert_eq!(fake.say("talker_ask", json!({}), &mut person), "\"Ada\"");
    assert_eq!(person.asked[0].0.asker.as_deref(), Some("talker_ask"));
    assert_eq!(fake.say("talker_ask", json!({}), &mut Person::default()), "asks input-1");
}

#[test]
fn approval_is_asked_before_the_server_is_called() {
    let fake = fake().approved_always("talker_say");
    let mut person = Person::typing(&["no"]);
    let refused = fake.say("talker_say", json!({ "say": "hi" }), &mut person);
    assert!(refused.starts_with("Approval: "), "{refused}");
    let mut person = Person::typing(&["yes"]);
    assert_eq!(fake.say("talker_say", json!({ "say": "hi" }), &mut person), "hi");
}

#[test]
fn resources_obey_the_strictest_tool_of_their_server() {
    // `talker_ask`, which needs no approval, is the first tool by name.
    let fake = fake().approved_always("talker_say");
    let uri = "kitbag://server/talker/note:1";
    let read = |answer| {
        let item = fake.toolbox.server_resource(uri).unwrap();
        let invocation = Invocation::server_item(item, Map::new());
        fake.call(invocation, &mut Person::typing(&[answer]))
    };
    let refused = read("no").err().map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::Approval));
    let Ok(CallOutcome::Completed(done)) = read("yes") else { panic!("it is approved") };
    let body = ResourceBody::Text("a note".into());
    let resource = Resource { uri: uri.into(), mime_type: None, body };
    assert_eq!(done.completion.emitted, [Content::Resource(resource)]);
    let audit = fake.audit();
    assert_eq!(audit.last().unwrap(), "call talker_say by program test: success", "{audit:?}");
}

#[test]
fn other_tools_call_server_tools() {
    let fake = fake().tool("outer", |call: NativeCall<'_>| {
        Box::pin(async move {
            let inner = Invocation::tool("talker_say", json!({ "say": "inside" }));
            call.call(inner).await.unwrap_or_else(|error| Outcome::Success(error.to_string()))
        })
    });
    assert_eq!(fake.say("outer", json!({}), &mut Person::default()), "inside");
}
