//! A server whose people have a token each, and attacks of one person on another.

use std::io::Read;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::http::{begin_as, in_session};
use super::texts;
use crate::support::http::{HttpServer, Reply};
use crate::support::mcp::{meta, meta_of};
use crate::support::{Workspace, guest, until};

/// A workspace with the tools `probe` and `relay`, which calls `probe` and `other`.
fn workspace(toolsets: &[&str], probe: &str) -> Workspace {
    let workspace = Workspace::with_toolsets(toolsets);
    let (wasm, relay) = (guest("probe"), guest("relay"));
    workspace.config(&format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {wasm:?}\n\
         grants.filesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"rw\" }}]\n{probe}\n\
         [tools.other]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.relay]\nsource = \"local\"\nwasm = {relay:?}\n\
         grants.filesystem = []\ngrants.tools = {{ probe = \"probe\", other = \"other\" }}\n"
    ));
    workspace
}

/// Gives a person a token, and returns the header with it.
fn token(workspace: &Workspace, arguments: &[&str]) -> String {
    let run = workspace.run(&[&["token", "add"], arguments].concat());
    let token = run.clone().success();
    let token = token.trim();
    assert_eq!(token.len(), 43, "{}", run.shown());
    let own = std::fs::read_to_string(workspace.own_config_file()).unwrap();
    assert!(!own.contains(token), "{own}");
    format!("Authorization: Bearer {token}\r\n")
}

fn call_as(
    server: &HttpServer,
    person: &str,
    client: &str,
    tool: &str,
    arguments: &Value,
) -> Reply {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta_of(client) });
    server.message(person, "tools/call", params)
}

fn call(server: &HttpServer, person: &str, tool: &str, arguments: &Value) -> Reply {
    call_as(server, person, "test", tool, arguments)
}

fn echo(server: &HttpServer, person: &str) -> Reply {
    call(server, person, "probe", &json!({ "do": "echo", "text": "hello" }))
}

#[track_caller]
fn check_echo(reply: &Reply) {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(texts(&reply.message()["result"]), ["hello"], "{reply:?}");
}

fn names(reply: &Reply) -> Vec<String> {
    let message = reply.message();
    let tools = message["result"]["tools"].as_array().unwrap_or_else(|| panic!("{message}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_person_has_their_own_memory_rate_and_name() {
    let workspace = workspace(&["memory"], "rate = \"2/h\"");
    workspace.add_to_own_config("[audit]\nsync = \"each\"\n");
    // A name can look like another kind of caller.
    let (ann, ben) = (token(&workspace, &["ann"]), token(&workspace, &["http"]));
    let server = HttpServer::start(&workspace, &[]);
    assert_eq!(server.token, None, "no shared token is made");
    let saved = call(&server, &ann, "remember", &json!({ "text": "the safe is behind Monet" }));
    assert_ne!(saved.message()["result"]["isError"], true, "{saved:?}");
    for (person, expected) in [(&ann, true), (&ben, false)] {
        for tool in ["recall", "list_memories"] {
            // The declared name of a client does not matter.
            let found = call_as(&server, person, "person ann", tool, &json!({}));
            assert_eq!(found.body.contains("Monet"), expected, "{tool}: {found:?}");
        }
    }
    // One person uses up their rate, under any declared name.
    for client in ["a", "b"] {
        check_echo(&call_as(
            &server,
            &ann,
            client,
            "probe",
            &json!({ "do": "echo", "text": "hello" }),
        ));
    }
    let refused = call_as(&server, &ann, "c", "probe", &json!({ "do": "echo", "text": "hello" }));
    assert!(refused.body.contains("2/h"), "{refused:?}");
    check_echo(&echo(&server, &ben));
    let log = workspace.run(&["audit", "--all", "--json"]).success();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut callers: Vec<_> = lines
        .filter(|line| line["event"] == "call")
        .map(|line| format!("{} {}", line["caller"].as_str().unwrap(), line["tool"]))
        .collect();
    callers.sort();
    callers.dedup();
    let expected = [
        "ann \"list_memories\"",
        "ann \"probe\"",
        "ann \"recall\"",
        "ann \"remember\"",
        "http \"list_memories\"",
        "http \"probe\"",
        "http \"recall\"",
    ];
    assert_eq!(callers, expected.map(|it| format!("person {it}")));
    let shown = workspace.run(&["audit", "--caller", "person ann"]).success();
    assert!(shown.contains("person ann, client \"test 1\": "), "{shown}");
}

#[test]
fn wrong_tokens_are_refused() {
    let workspace = workspace(&[], "");
    let ann = token(&workspace, &["ann"]);
    let server = HttpServer::start(&workspace, &[]);
    check_echo(&echo(&server, &ann));
    let own = std::fs::read_to_string(workspace.own_config_file()).unwrap();
    let hash = own.split("sha256 = \"").nth(1).unwrap().split('"').next().unwrap();
    for headers in [
        String::new(),
        ann.replace("Bearer ", "Bearer x"),
        ann.replace("Bearer", "Basic"),
        "Authorization: Bearer ann\r\n".to_owned(),
        // The stored digest is not a token.
        format!("Authorization: Bearer {hash}\r\n"),
    ] {
        let reply = echo(&server, &headers);
        assert_eq!(reply.status, 401, "{headers}: {reply:?}");
        assert!(reply.body.contains("`kitbag token add`"), "{reply:?}");
    }
    let run = workspace.run(&["serve", "--http", "127.0.0.1:0", "--no-token"]);
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(run.stderr.contains("`--no-token` would let anyone in"), "{}", run.shown());
}

#[test]
fn a_shared_token_works_beside_those_of_people() {
    let workspace = workspace(&["memory"], "");
    let ann = token(&workspace, &["ann", "--tools", "rec*,remember"]);
    let file = workspace.outside().join("token");
    std::fs::write(&file, "a-token-of-my-own-1234\n").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, private).unwrap();
    let server = HttpServer::start(&workspace, &["--token-file", file.to_str().unwrap()]);
    let shared = "Authorization: Bearer a-token-of-my-own-1234\r\n";
    check_echo(&echo(&server, shared));
    call(&server, shared, "remember", &json!({ "text": "of all" }));
    let found = call(&server, &ann, "recall", &json!({}));
    assert!(!found.body.contains("of all"), "{found:?}");
    assert_eq!(names(&server.message(&ann, "tools/list", json!({}))), ["recall", "remember"]);
}

#[test]
fn a_session_and_its_state_belong_to_one_person() {
    let workspace = workspace(&[], "");
    let (ann, ben) = (token(&workspace, &["ann"]), token(&workspace, &["ben"]));
    let server = HttpServer::start(&workspace, &[]);
    let session = in_session(&begin_as(&server, &ann));
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string();
    let unknown = session.replace("Session-Id: ", "Session-Id: 0");
    for method in ["POST", "GET", "DELETE"] {
        let body = if method == "POST" { &*list } else { "" };
        let send = |session: &str| server.send(method, "/mcp", &format!("{ben}{session}"), body);
        let (stolen, missing) = (send(&session), send(&unknown));
        assert_eq!((stolen.status, &stolen.body), (missing.status, &missing.body), "{method}");
        assert_eq!(stolen.status, if method == "DELETE" { 204 } else { 404 }, "{stolen:?}");
    }
    assert_eq!(server.send("POST", "/mcp", &format!("{ann}{session}"), &list).status, 200);
    // State that the client carries, and state that the server keeps for a call with inner calls.
    for (tool, arguments, question) in [
        ("probe", json!({ "do": "ask" }), "go-on"),
        (
            "relay",
            json!({ "steps": [{ "call": { "tool": "probe", "arguments": { "do": "ask" } } }] }),
            "0/probe/go-on",
        ),
    ] {
        let ask = |person: &str, more: &Value| {
            let mut params = json!({ "name": tool, "arguments": arguments });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            params["_meta"] = meta(json!({ "elicitation": { "form": {} } }));
            server.message(person, "tools/call", params).message()
        };
        let asked = ask(&ann, &json!({}))["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let answer = json!({
            "requestState": asked["requestState"],
            "inputResponses": { question: { "action": "accept", "content": { question: true } } },
        });
        let stolen = ask(&ben, &answer);
        assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
        // The attempt does not take the state from its owner.
        let own = ask(&ann, &answer);
        assert_eq!(own["result"]["resultType"], "complete", "{own}");
        assert_ne!(own["result"]["isError"], true, "{own}");
    }
}

/// Reads a stream to its end.
fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

#[test]
fn a_removed_token_ends_sessions_streams_and_calls() {
    let workspace = workspace(&[], "");
    let (ann, ben) = (token(&workspace, &["ann"]), token(&workspace, &["ben"]));
    // The user config is a link, as in a repository of settings.
    let (own, target) = (workspace.own_config_file(), workspace.outside().join("settings"));
    std::fs::create_dir(&target).unwrap();
    let target = target.join("kitbag.toml");
    std::fs::rename(&own, &target).unwrap();
    std::os::unix::fs::symlink(&target, &own).unwrap();
    workspace.date_back();
    let server = HttpServer::start(&workspace, &[]);
    let session = in_session(&begin_as(&server, &ann));
    let stream = server.open_stream(&format!("{ann}{session}")).unwrap();
    let listening = server.begin(&ann, "subscriptions/listen", json!({ "toolsListChanged": true }));
    let arguments = json!({ "do": "gather", "path": "here", "until": "go" });
    let running =
        server.begin(&ann, "tools/call", json!({ "name": "probe", "arguments": arguments }));
    until(|| workspace.path("here").exists());
    workspace.run(&["token", "remove", "ann"]).success();
    // Each ends without the person's doing.
    rest(stream);
    rest(listening);
    let answer = rest(running);
    assert!(!answer.contains("let go"), "{answer}");
    let reply = echo(&server, &ann);
    assert_eq!(reply.status, 401, "{reply:?}");
    check_echo(&echo(&server, &ben));
    // A new token of that name does not get the old session.
    let again = token(&workspace, &["ann"]);
    until(|| echo(&server, &again).status == 200);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string();
    let gone = server.send("POST", "/mcp", &format!("{again}{session}"), &list);
    assert_eq!(gone.status, 404, "{gone:?}");
    // Nor does the old token work.
    let replaced = token(&workspace, &["ann", "--replace"]);
    until(|| echo(&server, &replaced).status == 200);
    assert_eq!(echo(&server, &again).status, 401);
    assert_eq!(echo(&server, &ann).status, 401);
}

#[test]
fn the_first_token_is_accepted_without_a_restart() {
    let workspace = workspace(&[], "");
    workspace.date_back();
    // Neither the user config nor its directory exists.
    workspace.remove_own_config();
    let server = HttpServer::start(&workspace, &[]);
    let shared = format!("Authorization: Bearer {}\r\n", server.token.as_ref().unwrap());
    check_echo(&echo(&server, &shared));
    let ann = token(&workspace, &["ann"]);
    until(|| echo(&server, &ann).status == 200);
    let ben = token(&workspace, &["ben"]);
    until(|| echo(&server, &ben).status == 200);
    workspace.run(&["token", "remove", "ann"]).success();
    until(|| echo(&server, &ann).status == 401);
    check_echo(&echo(&server, &ben));
}

#[test]
fn tools_outside_a_persons_list_cannot_be_reached() {
    let mut workspace = workspace(&["files", "python", "learn"], "");
    workspace.use_own_cache();
    workspace.file("notes.md", "secret plan");
    workspace.file("docs/plan.md", "secret plan");
    workspace.add_to_own_config("");
    let text = std::fs::read_to_string(workspace.path(".kitbag/config.toml")).unwrap();
    workspace.config(&format!("{text}[knowledge.docs]\nsubjects = \"docs\"\n"));
    let ann = token(&workspace, &["ann", "--tools", "python,relay,probe"]);
    let ben = token(&workspace, &["ben"]);
    let none = token(&workspace, &["none", "--tools", ""]);
    let server = HttpServer::start(&workspace, &["--tools", "python,relay,other,read_file,learn"]);
    let list = |person: &str| names(&server.message(person, "tools/list", json!({})));
    // The server offers less than the person's list.
    assert_eq!(list(&ann), ["python", "relay"]);
    assert_eq!(list(&ben), ["learn", "other", "python", "read_file", "relay"]);
    assert_eq!(list(&none), [""; 0]);
    let read = json!({ "path": "notes.md" });
    let hidden = call(&server, &ann, "read_file", &read).message();
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
    let message = hidden["error"]["message"].to_string();
    assert!(message.contains("serve.tokens.ann.tools"), "{hidden}");
    let of_ben = call(&server, &ben, "read_file", &read);
    assert!(of_ben.body.contains("secret plan"), "{of_ben:?}");
    // Through a script.
    let script = json!({ "code": "print(read_file(path='notes.md'))" });
    let hidden = call(&server, &ann, "python", &script);
    assert!(!hidden.body.contains("secret plan"), "{hidden:?}");
    assert!(hidden.body.contains("NameError"), "{hidden:?}");
    let of_ben = call(&server, &ben, "python", &script);
    assert!(of_ben.body.contains("secret plan"), "{of_ben:?}");
    // Through a tool that may call it.
    let steps = json!({ "steps": [
        { "call": { "tool": "other", "arguments": { "do": "echo", "text": "reached" } } },
    ] });
    let hidden = call(&server, &ann, "relay", &steps);
    assert!(!hidden.body.contains("ok reached"), "{hidden:?}");
    let of_ben = call(&server, &ben, "relay", &steps);
    assert!(of_ben.body.contains("ok reached"), "{of_ben:?}");
    // Through resources and prompts, which are calls of `learn`.
    let uri = json!({ "uri": "kb://docs/plan" });
    let hidden = server.message(&ann, "resources/read", uri.clone());
    assert!(!hidden.body.contains("secret plan"), "{hidden:?}");
    let of_ben = server.message(&ben, "resources/read", uri);
    assert!(of_ben.body.contains("secret plan"), "{of_ben:?}");
    for method in ["resources/list", "resources/templates/list", "prompts/list", "server/discover"]
    {
        let hidden = server.message(&ann, method, json!({}));
        assert!(!hidden.body.contains("plan") && !hidden.body.contains("docs"), "{hidden:?}");
    }
    // A changed list takes effect without a restart.
    let own = std::fs::read_to_string(workspace.own_config_file()).unwrap();
    let own = own.replace("\"python\", \"relay\", \"probe\"", "\"read_file\"");
    std::fs::write(workspace.own_config_file(), own).unwrap();
    until(|| list(&ann) == ["read_file"]);
}

#[test]
fn a_workspace_cannot_declare_people() {
    let workspace = workspace(&[], "");
    let (ann, eve) = (token(&workspace, &["ann"]), token(&workspace, &["eve"]));
    let own = std::fs::read_to_string(workspace.own_config_file()).unwrap();
    let start = own.find("[serve.tokens.eve]").unwrap();
    // The attacker knows the token that belongs to this digest.
    let (rest, of_eve) = own.split_at(start);
    std::fs::write(workspace.own_config_file(), rest).unwrap();
    let config = std::fs::read_to_string(workspace.path(".kitbag/config.toml")).unwrap();
    workspace.config(&format!("{config}{of_eve}"));
    for workspace in [&workspace, &workspace] {
        let server = HttpServer::start(workspace, &[]);
        check_echo(&echo(&server, &ann));
        assert_eq!(echo(&server, &eve).status, 401);
    }
    let run = workspace.run(&["check"]);
    assert_eq!(run.code, 4, "{}", run.shown());
    assert!(run.stderr.contains("a workspace may not set `serve.tokens`"), "{}", run.shown());
    let workspace = workspace.untrusted();
    let server = HttpServer::start(&workspace, &[]);
    assert_eq!(echo(&server, &eve).status, 401);
}

#[test]
fn a_mistake_in_a_persons_table_refuses_their_token() {
    let workspace = workspace(&[], "");
    let (ann, ben) = (token(&workspace, &["ann"]), token(&workspace, &["ben"]));
    let own = std::fs::read_to_string(workspace.own_config_file()).unwrap();
    let of_ann = own.split("[serve.tokens.ann]\n").nth(1).unwrap().lines().next().unwrap();
    for mistake in [
        // Ignoring the mistake would offer every tool.
        format!("{of_ann}\ntool = [\"read_*\"]"),
        format!("{of_ann}\ntools = \"read_*\""),
        format!("{of_ann}\ntools = [\"[\"]"),
        format!("{of_ann}\ntools = [1]"),
        "tools = []".to_owned(),
        "sha256 = \"12\"".to_owned(),
    ] {
        std::fs::write(workspace.own_config_file(), own.replacen(of_ann, &mistake, 1)).unwrap();
        let server = HttpServer::start(&workspace, &[]);
        let reply = echo(&server, &ann);
        assert_eq!(reply.status, 401, "{mistake}: {reply:?}");
        assert_eq!(echo(&server, &ben).status, 200, "{mistake}");
        assert_eq!(workspace.run(&["check"]).code, 4, "{mistake}");
    }
    // Two people with one token could not be distinguished.
    let of_ben = own.split("[serve.tokens.ben]\n").nth(1).unwrap();
    std::fs::write(workspace.own_config_file(), own.replacen(of_ann, of_ben, 1)).unwrap();
    let server = HttpServer::start(&workspace, &[]);
    assert_eq!([&ann, &ben].map(|person| echo(&server, person).status), [401, 401]);
}

#[test]
fn people_are_added_listed_and_removed() {
    let workspace = Workspace::new();
    workspace.add_to_own_config("\n# Ours.\n[serve]\nmemory = \"1GiB\" # enough\n");
    token(&workspace, &["ann"]);
    token(&workspace, &["ben", "--tools", "read_*,learn"]);
    let listed = workspace.run(&["token", "list"]).success();
    assert_eq!(listed, "ann  every tool of the server\nben  read_*, learn\n");
    let own = std::fs::read_to_string(workspace.own_config_file()).unwrap();
    assert!(own.contains("# Ours.\n[serve]\nmemory = \"1GiB\" # enough\n"), "{own}");
    for (arguments, expected) in [
        (&["add", "ann"][..], "`ann` has a token already; `kitbag token add ann --replace`"),
        (&["remove", "eve"], "`eve` has no token; there are ann, ben"),
        (&["add", "a/b"], "is not the name of a person"),
        (&["add", "-x"], ""),
        (&["add", "eve", "--tools", "["], "`--tools`: "),
    ] {
        let run = workspace.run(&[&["token"], arguments].concat());
        assert_eq!(run.code, 2, "{}", run.shown());
        assert!(run.stderr.contains(expected), "{}", run.shown());
    }
    let added = workspace.run(&["token", "add", "eve", "--json"]).json();
    assert_eq!((&added["name"], added["token"].as_str().unwrap().len()), (&json!("eve"), 43));
    let listed = workspace.run(&["token", "list", "--json"]).json();
    assert_eq!(listed[1]["tools"], json!(["read_*", "learn"]), "{listed}");
    let shown = workspace.run(&["config", "--show"]).success();
    assert!(shown.contains("serve.tokens.ben.tools = [\"read_*\",\"learn\"]"), "{shown}");
    for name in ["ann", "ben", "eve"] {
        workspace.run(&["token", "remove", name]).success();
    }
    assert_eq!(workspace.run(&["token", "list"]).success(), "");
}
