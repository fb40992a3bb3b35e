//! Prompts and resources of MCP servers inside the test's process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kitbag_config::{Sources, load};
use kitbag_host::{Host, HostOptions};
use kitbag_policy::SecretName;
use kitbag_policy::server::{ServerAddress, ServerName, ServerProcess};
use kitbag_secrets::{SecretValue, Secrets};
use kitbag_servers::{Connect, Link, Servers, ServersOptions};
use kitbag_toolbox::Toolbox;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

use super::client::Client;
use super::native_tools::NoSecrets;
use crate::Server;

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

struct Fakes;

impl Connect for Fakes {
    fn connect(
        &self,
        name: &ServerName,
        _: &ServerProcess,
        _: &[(SecretName, Arc<SecretValue>)],
    ) -> Result<Link, String> {
        let (client, server) = duplex(64 << 10);
        tokio::spawn(serve(server, name.to_string()));
        let (read, write) = split(client);
        Ok(Link { read: Box::new(read), write: Box::new(write), process: None })
    }
}

/// Serves one connection. The server `silent` answers only what concerns tools.
async fn serve(stream: DuplexStream, name: String) {
    let (read, mut write) = split(stream);
    let mut lines = BufReader::new(read).lines();
    let mut prompts =
        vec![json!({ "name": "greet", "arguments": [{ "name": "who", "required": true }] })];
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let params = &message["params"];
        let text = |text: String| json!({ "type": "text", "text": text });
        let (mut is_changed, mut updated) = (false, None);
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {
                    "tools": {}, "prompts": {}, "resources": { "subscribe": true },
                    "completions": {},
                },
                "serverInfo": { "name": name, "version": "1" },
            }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "say", "inputSchema": { "type": "object" } }] })
            }
            Some("tools/call") => {
                prompts.push(json!({ "name": "new", "description": TOKEN }));
                is_changed = true;
                json!({ "content": [text(params["arguments"].to_string())] })
            }
            Some("server/discover") => {
                let error = json!({ "code": -32601, "message": "unknown" });
                let refused = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                write.write_all(format!("{refused}\n").as_bytes()).await.unwrap();
                continue;
            }
            _ if name == "silent" => continue,
            Some("prompts/list") => {
                let mut listed = prompts.clone();
                // A name of the server `a_b`, and one with a key.
                listed.push(json!({ "name": "b_greet" }));
                listed.push(json!({ "name": TOKEN }));
                json!({ "prompts": listed })
            }
            Some("resources/list") => {
                let own = json!({ "uri": "kb://skills/a", "name": "a" });
                json!({ "resources": [own, { "uri": "note:1?x", "name": TOKEN }] })
            }
            Some("resources/templates/list") => {
                json!({ "resourceTemplates": [{ "uriTemplate": "note:{id}", "name": "note" }] })
            }
            Some("resources/subscribe" | "resources/unsubscribe") => {
                updated = Some(params["uri"].clone());
                json!({})
            }
            Some("resources/read") => {
                let text = format!("{} {} {TOKEN}", name, params["uri"].as_str().unwrap());
                json!({ "contents": [{ "uri": params["uri"], "text": text }] })
            }
            Some("prompts/get") => {
                let who = params["arguments"]["who"].as_str().unwrap_or_default();
                let user = json!({ "role": "user", "content": text(format!("{name}: {who}")) });
                let said = json!({ "role": "assistant", "content": text(TOKEN.into()) });
                json!({ "messages": [user, said] })
            }
            Some("completion/complete") => {
                json!({ "completion": { "values": ["Ada", TOKEN, "\u{1b}[2J"] } })
            }
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        if let Some(uri) = updated {
            let method = "notifications/resources/updated";
            let news = json!({ "jsonrpc": "2.0", "method": method, "params": { "uri": uri } });
            write.write_all(format!("{news}\n").as_bytes()).await.unwrap();
        }
        if is_changed {
            let method = "notifications/prompts/list_changed";
            let changed = json!({ "jsonrpc": "2.0", "method": method });
            write.write_all(format!("{changed}\n").as_bytes()).await.unwrap();
        }
    }
}

/// Creates a server that offers the tools of these MCP servers.
fn server(names: &[&str]) -> Server {
    let directory = tempfile::tempdir().unwrap();
    let start = directory.path().to_owned();
    let config = load(&Sources { start, ..Sources::default() }).unwrap();
    let secrets = Arc::new(Secrets::new(NoSecrets, Vec::new()));
    let mut toolbox = Toolbox::new(Host::new(HostOptions::default()), config, &[], secrets, None);
    let connect: Arc<dyn Connect> = Arc::new(Fakes);
    let options = ServersOptions { connect: Some(connect), ..ServersOptions::default() };
    toolbox = toolbox.with_servers(Servers::new(options));
    for name in names {
        let process = ServerProcess::new("fake", "/");
        let address = Arc::new(ServerAddress::Process(process));
        let target = toolbox.target_of(&ServerName::new(*name).unwrap(), address);
        let listing = Host::block_on(|| toolbox.list_server(&target)).unwrap().unwrap();
        toolbox = toolbox.with_server_tools(&target, &listing).unwrap().0;
    }
    let reload = toolbox.clone();
    Server::new(toolbox, Box::new(move || Ok(reload.clone())), None).unwrap()
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let items = list["result"].as_object().unwrap().values().find(|value| value.is_array());
    let items = items.unwrap().as_array().unwrap();
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

/// Waits until the servers have listed their items.
fn prompts(client: &mut Client, number: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let listed = names(&client.request("prompts/list", json!({})), "name");
        if listed.len() >= number || start.elapsed() > Duration::from_secs(20) {
            return listed;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn items_of_servers_have_the_name_of_their_server() {
    for stateless in [false, true] {
        let client = Client::start(server(&["a", "a_b"]));
        let mut client = match stateless {
            true => client.stateless(json!({})),
            false => client.after_handshake(json!({})),
        };
        assert_eq!(prompts(&mut client, 3), ["a_b_b_greet", "a_b_greet", "a_greet"]);
        let resources = client.request("resources/list", json!({}));
        let expected = ["a/kb://skills/a", "a/note:1?x", "a_b/kb://skills/a", "a_b/note:1?x"];
        assert_eq!(names(&resources, "uri"), expected.map(|uri| format!("kitbag://server/{uri}")));
        assert!(!resources.to_string().contains(TOKEN), "{resources}");
        let templates = client.request("resources/templates/list", json!({}));
        let expected = ["a", "a_b"].map(|name| format!("kitbag://server/{name}/note:{{id}}"));
        assert_eq!(names(&templates, "uriTemplate"), expected);
    }
}

#[test]
fn resources_of_servers_are_read_and_masked() {
    let mut client = Client::start(server(&["a"])).after_handshake(json!({}));
    let uri = "kitbag://server/a/note:7?key=1";
    let read = client.request("resources/read", json!({ "uri": uri }));
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["uri"], uri, "{read}");
    let text = contents["text"].as_str().unwrap();
    assert!(text.starts_with("a note:7?key=1 ") && !text.contains(TOKEN), "{text}");
    assert_eq!(read["result"]["_meta"]["kitbag/untrusted"], true);
    for unknown in ["kitbag://server/b/note:7", "kitbag://server/a/", "note:7", "kitbag://server/a"]
    {
        let refused = client.request("resources/read", json!({ "uri": unknown }));
        assert!(refused["error"]["code"].is_number(), "{refused}");
    }
}

#[test]
fn prompts_of_servers_keep_their_roles() {
    let mut client = Client::start(server(&["a", "a_b"])).after_handshake(json!({}));
    prompts(&mut client, 3);
    let arguments = json!({ "who": "Ada" });
    let got = client.request("prompts/get", json!({ "name": "a_b_greet", "arguments": arguments }));
    let messages = &got["result"]["messages"];
    assert_eq!(messages[0]["role"], "user", "{got}");
    assert_eq!(messages[0]["content"]["text"], "a_b: Ada");
    assert_eq!(messages[1]["role"], "assistant");
    assert!(!got.to_string().contains(TOKEN), "{got}");
    let missing = client.request("prompts/get", json!({ "name": "a_greet" }));
    assert!(missing["error"]["message"].as_str().unwrap().contains("who"), "{missing}");
}

#[test]
fn items_of_a_hidden_server_are_refused() {
    let server = server(&["a"]);
    let mut client = Client::start(server.clone()).after_handshake(json!({}));
    assert_eq!(prompts(&mut client, 2), ["a_b_greet", "a_greet"]);
    let toolbox = server.generation().toolbox.clone();
    // A person who may use no tool.
    server.set_toolbox(toolbox.for_person(None));
    assert_eq!(names(&client.request("prompts/list", json!({})), "name"), [""; 0]);
    assert_eq!(names(&client.request("resources/list", json!({})), "uri"), [""; 0]);
    let uri = "kitbag://server/a/note:1";
    for (method, params) in [
        ("resources/read", json!({ "uri": uri })),
        ("prompts/get", json!({ "name": "a_greet", "arguments": { "who": "x" } })),
    ] {
        let refused = client.request(method, params);
        assert!(refused["error"]["code"].is_number(), "{refused}");
    }
}

#[test]
fn changed_prompts_of_a_server_are_notified() {
    let mut client = Client::start(server(&["a"])).after_handshake(json!({}));
    prompts(&mut client, 1);
    client.others();
    client.request("tools/call", json!({ "name": "a_say", "arguments": {} }));
    client.wait(|message| message["method"] == "notifications/prompts/list_changed");
    let listed = client.request("prompts/list", json!({}));
    assert_eq!(names(&listed, "name"), ["a_b_greet", "a_greet", "a_new"]);
    assert!(!listed.to_string().contains(TOKEN), "{listed}");
}

#[test]
fn completions_of_servers_are_screened() {
    let mut client = Client::start(server(&["a"])).after_handshake(json!({}));
    prompts(&mut client, 1);
    let argument = json!({ "name": "who", "value": "A" });
    for reference in [
        json!({ "type": "ref/prompt", "name": "a_greet" }),
        json!({ "type": "ref/resource", "uri": "kitbag://server/a/note:{id}" }),
    ] {
        let params = json!({ "ref": reference, "argument": argument });
        let completed = client.request("completion/complete", params);
        assert_eq!(completed["result"]["completion"]["values"], json!(["Ada"]), "{completed}");
    }
}

#[test]
fn a_silent_server_delays_no_list() {
    let mut client = Client::start(server(&["a", "silent"])).after_handshake(json!({}));
    let start = Instant::now();
    prompts(&mut client, 1);
    let unread = json!({ "uri": "kitbag://server/silent/note:1" });
    let read = client.send("resources/read", unread);
    for method in ["prompts/list", "resources/list", "resources/templates/list", "ping"] {
        assert!(client.request(method, json!({})).get("result").is_some());
    }
    let argument = json!({ "name": "id", "value": "1" });
    let reference = json!({ "type": "ref/resource", "uri": "kitbag://server/silent/note:{id}" });
    let completed =
        client.request("completion/complete", json!({ "ref": reference, "argument": argument }));
    assert_eq!(completed["result"]["completion"]["values"], json!([]));
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    client.notify("notifications/cancelled", json!({ "requestId": read }));
}

#[test]
fn subscriptions_to_resources_reach_their_server() {
    let uri = "kitbag://server/a/note:1";
    let updated = |message: &Value| {
        message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
    };
    let mut client = Client::start(server(&["a"])).after_handshake(json!({}));
    let subscribed = client.request("resources/subscribe", json!({ "uri": uri }));
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    client.wait(updated);
    let unknown = client.request("resources/subscribe", json!({ "uri": "kitbag://server/b/x" }));
    assert!(unknown["error"]["code"].is_number(), "{unknown}");
    let mut client = Client::start(server(&["a"])).stateless(json!({}));
    let notifications = json!({ "resourceSubscriptions": [uri, "kitbag://server/b/x"] });
    client.send("subscriptions/listen", json!({ "notifications": notifications }));
    let acknowledged =
        client.wait(|message| message["method"] == "notifications/subscriptions/acknowledged");
    let accepted = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*accepted, json!([uri]));
    client.wait(updated);
}

#[test]
fn integers_of_64_bits_reach_a_server_unchanged() {
    let mut client = Client::start(server(&["a"])).after_handshake(json!({}));
    let arguments = json!({
        "above": 9_007_199_254_740_993_u64, "max": u64::MAX, "min": i64::MIN,
        "list": [-9_007_199_254_740_993_i64, { "n": 1_152_921_504_606_846_977_u64 }],
    });
    let said = client.request("tools/call", json!({ "name": "a_say", "arguments": arguments }));
    let text = said["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), arguments, "{said}");
}
