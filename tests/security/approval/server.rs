//! The server: clients with forms in both eras, clients without forms, and several clients at once.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{content, logged, workspace, write};
use crate::support::Workspace;
use crate::support::http::HttpServer;
use crate::support::mcp::Client;

pub(super) fn forms() -> Value {
    json!({ "elicitation": {} })
}

pub(super) fn accept(answer: &str) -> Value {
    json!({ "action": "accept", "content": { "approve": answer } })
}

fn call(arguments: &Value) -> Value {
    json!({ "name": "probe", "arguments": arguments })
}

pub(super) fn text(answer: &Value) -> String {
    let result = if answer.get("result").is_some() { &answer["result"] } else { answer };
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

pub(super) const REFUSED: &str =
    "the call of `probe` was not approved: the user declined; nothing was done";

#[test]
fn each_answer_of_a_form_has_its_stated_effect() {
    let workspace = workspace("\"always\"");
    let mut client = Client::with_handshake(&workspace, forms());
    let mut ask = |text: &str, reply: Value| {
        let id = client.send("tools/call", call(&write("a.txt", text)));
        let asked = client.reply("elicitation/create", reply);
        (asked, self::text(&client.answer(id)))
    };
    let (asked, said) = ask("1", accept("no"));
    assert_eq!(said, REFUSED);
    assert_eq!(
        asked["requestedSchema"],
        json!({
            "type": "object",
            "properties": { "approve": {
                "type": "string",
                "title": "Allow this call?",
                "description": "yes: once; always: in this session; no: the call is not made",
                "enum": ["yes", "always", "no"],
            } },
            "required": ["approve"],
        })
    );
    let message = asked["message"].as_str().unwrap();
    assert!(message.starts_with("Call of `probe` ("), "{message}");
    assert!(message.contains(". Rule: `approve = \"always\"` ("), "{message}");
    assert!(message.ends_with("\nAllow this call of `probe`?"), "{message}");
    assert!(message.contains("\nCalled by client stdio, for user "), "{message}");
    for reply in [json!({ "action": "decline" }), json!({ "action": "cancel" })] {
        assert_eq!(ask("1", reply).1, REFUSED);
    }
    assert_eq!(content(&workspace, "a.txt"), None);
    assert_eq!(ask("1", accept("yes")).1, "write a.txt: 1 byte");
    assert_eq!(ask("1", accept("always")).1, "write a.txt: 1 byte", "one approval is for one call");
    // Allowed until the process ends: repeated without a question, unlike a different call.
    assert_eq!(text(&client.call("probe", write("a.txt", "1"))), "write a.txt: 1 byte");
    let id = client.send("tools/call", call(&write("a.txt", "2")));
    client.reply("elicitation/create", accept("no"));
    assert_eq!(text(&client.answer(id)), REFUSED);
    client.close();
    let answers: Vec<_> = logged(&workspace)
        .iter()
        .map(|line| line.split(' ').nth(1).unwrap().to_owned())
        .filter(|answer| answer != "asked")
        .collect();
    assert_eq!(answers, ["no", "no", "no", "yes", "always", "remembered", "no"]);
}

/// Makes a call until there is a question: returns the state, the ID of the question and the form.
#[track_caller]
fn asked(client: &mut Client, arguments: &Value) -> (Value, String, Value) {
    let answer = client.request("tools/call", call(arguments));
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let requests = result["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1);
    let (id, request) = requests.iter().next().unwrap();
    (result["requestState"].clone(), id.clone(), request["params"].clone())
}

pub(super) fn resumed(arguments: &Value, state: &Value, id: &str, response: Value) -> Value {
    let mut params = call(arguments);
    if !state.is_null() {
        params["requestState"] = state.clone();
    }
    params["inputResponses"] = json!({ id: response });
    params
}

#[test]
fn a_stateless_client_sends_the_answer_with_the_shown_call() {
    let workspace = workspace("\"always\"");
    let mut client = Client::stateless(&workspace, forms());
    let arguments = write("a.txt", "1");
    let (state, id, form) = asked(&mut client, &arguments);
    assert!(form["message"].as_str().unwrap().contains("| text: \"1\"\n"), "{form}");
    let yes = resumed(&arguments, &state, &id, accept("yes"));
    let answer = client.request("tools/call", yes.clone());
    assert_eq!(text(&answer), "write a.txt: 1 byte");
    // An old state: the approval was for one call.
    std::fs::remove_file(workspace.path("a.txt")).unwrap();
    let again = client.request("tools/call", yes);
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert_eq!(content(&workspace, "a.txt"), None);
    // A refusal, and a form that was closed.
    for response in [accept("no"), json!({ "action": "decline" }), json!({ "action": "cancel" })] {
        let (state, id, _) = asked(&mut client, &arguments);
        let answer = client.request("tools/call", resumed(&arguments, &state, &id, response));
        assert_eq!(text(&answer), REFUSED);
    }
    // An invalid answer leads to another question.
    let (state, id, _) = asked(&mut client, &arguments);
    let answer = client.request("tools/call", resumed(&arguments, &state, &id, accept("perhaps")));
    let message = answer["result"]["inputRequests"][&id]["params"]["message"].as_str();
    assert!(message.unwrap().ends_with("is not one of `yes`, `always`, `no`)"), "{answer}");
    let state = answer["result"]["requestState"].clone();
    let answer = client.request("tools/call", resumed(&arguments, &state, &id, accept("always")));
    assert_eq!(text(&answer), "write a.txt: 1 byte");
    assert_eq!(text(&client.call("probe", arguments)), "write a.txt: 1 byte");
}

#[test]
fn approval_does_not_cover_other_arguments() {
    let workspace = workspace("\"always\"");
    let mut client = Client::stateless(&workspace, forms());
    let (shown, other) = (write("a.txt", "shown"), write("a.txt", "other"));
    // With the state of the shown call.
    let (state, id, _) = asked(&mut client, &shown);
    let answer = client.request("tools/call", resumed(&other, &state, &id, accept("yes")));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // Without a state.
    let answer = client.request("tools/call", resumed(&other, &Value::Null, &id, accept("yes")));
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    // With the state of another question about the other call.
    let (others, _, _) = asked(&mut client, &other);
    let answer = client.request("tools/call", resumed(&other, &others, &id, accept("yes")));
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    // With IDs that could be guessed.
    for id in ["approve", "kitbag/approve", "kitbag/approve/0", "kitbag/ticket"] {
        let answer = client.request("tools/call", resumed(&other, &Value::Null, id, accept("yes")));
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    }
    // With a forged state.
    let mut forged = state.as_str().unwrap().to_owned().into_bytes();
    forged[10] ^= 1;
    let forged = Value::from(String::from_utf8_lossy(&forged).into_owned());
    let answer = client.request("tools/call", resumed(&shown, &forged, &id, accept("yes")));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(content(&workspace, "a.txt"), None);
    // With the state of another process.
    let mut second = Client::stateless(&workspace, forms());
    let answer = second.request("tools/call", resumed(&shown, &state, &id, accept("yes")));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(content(&workspace, "a.txt"), None);
    // It is still valid for the shown call.
    let answer = client.request("tools/call", resumed(&shown, &state, &id, accept("yes")));
    assert_eq!(text(&answer), "write a.txt: 5 bytes");
}

#[test]
fn approval_does_not_cover_grants_added_meanwhile() {
    let workspace = Workspace::new();
    let config = |grants: &str| {
        format!(
            "[tools.probe]\nsource = \"local\"\nwasm = {:?}\napprove = \"always\"\n\
             description = \"d\"\ngrants.filesystem = [{grants}]\n",
            crate::support::guest("probe")
        )
    };
    let grant =
        |mode: &str| format!("{{ host = \".\", guest = \"/workspace\", mode = \"{mode}\" }}");
    workspace.config(&config(&grant("ro")));
    workspace.date_back();
    let mut client = Client::stateless(&workspace, forms());
    let arguments = write("a.txt", "1");
    let (state, id, _) = asked(&mut client, &arguments);
    workspace.config(&format!(
        "{}[tools.more]\nsource = \"local\"\nwasm = {:?}\n",
        config(&grant("rw")),
        crate::support::guest("echo")
    ));
    // Until the server uses the new configuration.
    while !client.request("tools/list", json!({})).to_string().contains("\"more\"") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let answer = client.request("tools/call", resumed(&arguments, &state, &id, accept("yes")));
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    assert_eq!(content(&workspace, "a.txt"), None);
}

#[test]
fn approval_accompanies_the_tools_own_question_once() {
    let workspace = workspace("\"always\"");
    let mut client = Client::stateless(&workspace, forms());
    let arguments = json!({ "do": "ask" });
    let (state, id, _) = asked(&mut client, &arguments);
    let answer = client.request("tools/call", resumed(&arguments, &state, &id, accept("yes")));
    let own = &answer["result"]["inputRequests"]["go-on"];
    assert_eq!(own["params"]["message"], "`probe` asks: Go on?", "{answer}");
    let state = answer["result"]["requestState"].clone();
    let go_on = json!({ "action": "accept", "content": { "go-on": true } });
    let resume = resumed(&arguments, &state, "go-on", go_on);
    let answer = client.request("tools/call", resume.clone());
    assert_eq!(text(&answer), r#"ask: {"go-on":true}"#, "the tool sees its own answers alone");
    // The second use of the same state carries no approval.
    let answer = client.request("tools/call", resume);
    let asked = answer["result"]["inputRequests"].as_object().unwrap();
    assert!(asked.keys().all(|id| id.starts_with("kitbag/approve/")), "{answer}");
}

#[test]
fn a_model_does_not_answer_for_a_person() {
    let workspace = workspace("\"always\"");
    let old = Client::with_handshake(&workspace, json!({}));
    let new = Client::stateless(&workspace, json!({}));
    for mut client in [old, new] {
        for id in ["approve", "kitbag/approve", "kitbag/approve/0", "kitbag/ticket"] {
            for answer in [json!("yes"), json!({ "answer": "yes" }), json!(true)] {
                let mut arguments = write("a.txt", "x");
                arguments["_answers"] = json!({ id: answer });
                let result = client.call("probe", arguments);
                assert_eq!(result["isError"], true, "{result}");
                let text = text(&result);
                assert!(
                    text.contains("needs the approval of a person, but no person can be asked")
                );
                assert!(!text.contains("approve ="), "it is not told how to be asked less: {text}");
                assert!(!text.contains("_answers"), "it is not told how to go on: {text}");
            }
        }
        assert_eq!(content(&workspace, "a.txt"), None);
    }
}

#[test]
fn a_tool_cannot_ask_with_a_question_id_of_the_host() {
    let workspace = workspace("{ when = { do = \"write\" } }");
    let mut client = Client::with_handshake(&workspace, forms());
    for id in ["kitbag/approve/0", "kitbag/ticket", "kitbag/"] {
        let arguments = json!({ "do": "ask", "id": id, "text": "Allow this call of `probe`?" });
        let result = client.call("probe", arguments);
        let text = text(&result);
        assert!(
            text.contains("ids that start with `kitbag/` are reserved for kitbag's own"),
            "{text}"
        );
    }
}

/// A client over HTTP with its own session.
pub(super) struct Session<'a> {
    server: &'a HttpServer,
    headers: String,
}

impl<'a> Session<'a> {
    pub(super) fn begin(server: &'a HttpServer) -> Self {
        Self::begin_as(server, "")
    }

    /// Like [`begin`](Self::begin), with this header of a person's token.
    pub(super) fn begin_as(server: &'a HttpServer, person: &str) -> Self {
        let base = format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {person}"
        );
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "clientInfo": { "name": "test", "version": "1" },
            "capabilities": forms(),
        } });
        let reply = server.send("POST", "/mcp", &base, &message.to_string());
        let id = reply.head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        let id = id.unwrap_or_else(|| panic!("{reply:?}"));
        let version = "MCP-Protocol-Version: 2025-11-25\r\n";
        let session = Self { server, headers: format!("{base}{version}Mcp-Session-Id: {id}\r\n") };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        session.server.send("POST", "/mcp", &session.headers, &initialized.to_string());
        session
    }

    /// The session as another person would use it, with their token.
    pub(super) fn stolen_by(&self, own: &str, person: &str) -> Self {
        Self { server: self.server, headers: self.headers.replace(own, person) }
    }

    /// Sends a message, and only waits until it is accepted.
    pub(super) fn send(&self, message: &Value) -> u16 {
        self.server.send("POST", "/mcp", &self.headers, &message.to_string()).status
    }

    /// Makes a call, and answers the form if there is one. Returns true if there was a form, and
    /// the result of the call.
    pub(super) fn call(&self, arguments: &Value, reply: &Value) -> (bool, String) {
        let mut was_asked = false;
        let text = self.call_with(call(arguments), |id| {
            was_asked = true;
            let reply = json!({ "jsonrpc": "2.0", "id": id, "result": reply });
            assert_eq!(self.send(&reply), 202);
        });
        (was_asked, text)
    }

    /// Makes a call, and returns its result. `asked` receives the ID of each form.
    pub(super) fn call_with(&self, params: Value, mut asked: impl FnMut(&Value)) -> String {
        use std::io::Write;
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let body = message.to_string();
        let mut stream = TcpStream::connect(self.server.address).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n",
            self.server.address,
            body.len(),
            self.headers
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            let Some(data) = line.strip_prefix("data:") else { continue };
            let Ok(message) = serde_json::from_str::<Value>(data) else { continue };
            if message["method"] == "elicitation/create" {
                asked(&message["id"]);
            } else if message["id"] == 1 {
                return text(&message);
            }
        }
        panic!("no answer");
    }
}

#[test]
fn approval_by_one_client_does_not_cover_another() {
    let workspace = workspace("\"always\"");
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let (first, second) = (Session::begin(&server), Session::begin(&server));
    let arguments = write("a.txt", "1");
    let written = "write a.txt: 1 byte".to_owned();
    assert_eq!(first.call(&arguments, &accept("always")), (true, written.clone()));
    assert_eq!(first.call(&arguments, &accept("no")), (false, written));
    // The same principal in another session, and in a request without a session.
    assert_eq!(second.call(&arguments, &accept("no")), (true, REFUSED.to_owned()));
    let reply = server.message("", "tools/call", call(&arguments));
    assert!(text(&reply.message()).contains("needs the approval of a person"), "{reply:?}");
}

#[test]
fn approval_without_a_session_covers_one_call() {
    let workspace = workspace("\"always\"");
    let server = HttpServer::start(&workspace, &["--no-token"]);
    let send = |params: Value| {
        let mut params = params;
        params["_meta"] = crate::support::mcp::meta(forms());
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = "Content-Type: application/json\r\n\
                       Accept: application/json, text/event-stream\r\n\
                       MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                       Mcp-Name: probe\r\n";
        server.send("POST", "/mcp", headers, &message.to_string()).message()
    };
    let arguments = write("a.txt", "1");
    let answer = send(call(&arguments));
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    let (id, request) = requests.iter().next().unwrap();
    let schema = &request["params"]["requestedSchema"]["properties"]["approve"];
    assert_eq!(schema["enum"], json!(["yes", "no"]), "{answer}");
    let state = answer["result"]["requestState"].clone();
    let again = send(resumed(&arguments, &state, id, accept("always")));
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let state = again["result"]["requestState"].clone();
    let done = send(resumed(&arguments, &state, id, accept("yes")));
    assert_eq!(text(&done), "write a.txt: 1 byte");
    assert_eq!(send(call(&arguments))["result"]["resultType"], "input_required");
}
