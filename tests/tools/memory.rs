//! The tools of `memory` together, through the binary, both servers and the library: the memories
//! that a call sees, the enabled tools, and `kitbag memory`.

use std::collections::BTreeSet;
use std::fs;

use kitbag::config::Sourced;
use kitbag::{CallContext, Caller, Invocation, Kitbag, NoAnswers, Outcome, Places};
use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::mcp::Client;
use crate::support::{Workspace, guest, snapshot};

fn workspace() -> Workspace {
    Workspace::with_toolsets(&["memory", "python"])
}

/// Remembers a text on the command line and returns its ID.
#[track_caller]
fn remember(workspace: &Workspace, text: &str) -> String {
    let answer = workspace.tool("remember", &json!({ "text": text }), &[]).success();
    answer.trim_end().strip_prefix("remembered ").unwrap().to_owned()
}

fn texts(answer: &str) -> BTreeSet<&str> {
    answer.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect()
}

/// The memories of the user, as seen on the command line.
fn own(workspace: &Workspace) -> String {
    workspace.tool("recall", &json!({}), &[]).success()
}

/// The ID of the user that runs the tests.
fn uid(workspace: &Workspace) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(workspace.root()).unwrap().uid()
}

#[test]
fn each_caller_has_its_own_memory() {
    let workspace = workspace();
    remember(&workspace, "at the command line");
    // A client that the user has started shares the user's memory.
    let mut client = Client::with_handshake(&workspace, json!({}));
    let params = |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments });
    let text = |answer: &Value| answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    let over_stdio = params("remember", json!({ "text": "over stdio" }));
    client.request("tools/call", over_stdio);
    let both = BTreeSet::from(["at the command line", "over stdio"]);
    let recall = params("recall", json!({}));
    assert_eq!(texts(&text(&client.request("tools/call", recall.clone()))), both);
    assert_eq!(texts(&own(&workspace)), both);
    // A client with a token is another caller, and a client without one is anonymous.
    let with_token = HttpServer::start(&workspace, &[]);
    let token = with_token.token.clone().unwrap();
    let token = format!("Authorization: Bearer {token}\r\n");
    let anonymous = HttpServer::start(&workspace, &["--no-token"]);
    for (server, headers, own) in
        [(&with_token, &*token, "with a token"), (&anonymous, "", "without one")]
    {
        let call = |tool: &str, arguments: Value| {
            let reply = server.message(headers, "tools/call", params(tool, arguments));
            assert_eq!(reply.status, 200, "{}", reply.body);
            text(&reply.message())
        };
        assert_eq!(call("recall", json!({})), "no memories are stored");
        call("remember", json!({ "text": own }));
        assert_eq!(texts(&call("recall", json!({}))), BTreeSet::from([own]));
        // The ID of a memory of another caller is not found.
        let id = remember(&workspace, "of the user");
        for (tool, arguments) in
            [("recall", json!({ "id": id })), ("forget", json!({ "ids": [id] }))]
        {
            assert_eq!(call(tool, arguments), format!("there is no memory `{id}`"));
        }
        workspace.tool("forget", &json!({ "ids": [id] }), &[]).success();
    }
    assert_eq!(texts(&own(&workspace)), both);
    // A person sees all memories, by name.
    let list = workspace.run(&["storage", "list", "--json"]).json();
    let names = list.as_array().unwrap().iter().map(|it| it["tool"].as_str().unwrap());
    let names: Vec<_> = names.map(|name| name.strip_prefix("memory/").unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0] == "client/http" && names[1].starts_with("client/http:"), "{names:?}");
    let export = workspace.run(&["memory", "export", "--caller", "client/http"]).success();
    assert!(export.contains("\n> without one\n") && !export.contains("token"), "{export}");
    let one = workspace.run(&["storage", "clear", names[1], "--yes"]);
    assert!(one.stderr.contains("removed 0 keys"), "{}", one.shown());
    let clear = workspace.run(&["storage", "clear", "memory", "--yes"]);
    assert_eq!(clear.stderr.matches("removed ").count(), 3, "{}", clear.shown());
    assert_eq!(own(&workspace), "no memories are stored\n");
}

#[test]
fn programs_have_their_own_memory_by_name() {
    let workspace = workspace();
    remember(&workspace, "of the user");
    let places = Places {
        cache: Some(workspace.cache().to_owned()),
        user_file: Some(workspace.own_config_file()),
        state: Some(Sourced::default(workspace.home().join(".local/state/kitbag"))),
        ..Places::default()
    };
    let kitbag = Kitbag::builder()
        .workspace(workspace.root())
        .places(places)
        .trust_workspace(true)
        .build()
        .unwrap();
    let call = |caller: Caller, tool: &str, arguments: Value| {
        let invocation = Invocation::tool(tool, arguments);
        let ended =
            kitbag.toolbox().call_blocking(invocation, CallContext::new(caller), &mut NoAnswers);
        match ended.unwrap().completion().unwrap().result.unwrap() {
            Outcome::Success(text) => text,
            other => panic!("{other:?}"),
        }
    };
    let program = |name: &str| Caller::Program(name.into());
    call(program("a"), "remember", json!({ "text": "of a" }));
    assert_eq!(call(program("b"), "recall", json!({})), "no memories are stored");
    assert!(call(program("a"), "recall", json!({})).ends_with("  of a"));
    // A name cannot address the memory of another program.
    for name in ["", "a/", "../user", "a\0", "a'; --"] {
        assert_eq!(call(program(name), "recall", json!({})), "no memories are stored", "{name:?}");
    }
    let here = call(Caller::this_user(), "recall", json!({}));
    assert_eq!(texts(&here), BTreeSet::from(["of the user"]));
    let other = call(Caller::User("nobody".into()), "recall", json!({}));
    assert_eq!(other, "no memories are stored");
}

#[test]
fn concurrent_writers_lose_nothing_even_after_a_kill() {
    let workspace = workspace();
    let mut servers = [(); 2].map(|()| Client::with_handshake(&workspace, json!({})));
    let mut killed = Client::with_handshake(&workspace, json!({}));
    let send = |client: &mut Client, name: &str, number: usize| {
        let arguments = json!({ "text": format!("{name} {number}"), "tags": [name] });
        client.send("tools/call", json!({ "name": "remember", "arguments": arguments }))
    };
    const EACH: usize = 300;
    let ids: Vec<Vec<u64>> = servers
        .iter_mut()
        .zip(["one", "two"])
        .map(|(server, name)| (0..EACH).map(|number| send(server, name, number)).collect())
        .collect();
    let doomed: Vec<u64> = (0..EACH).map(|number| send(&mut killed, "three", number)).collect();
    let mut said = 0;
    for id in &doomed[..50] {
        assert!(killed.answer(*id)["result"]["isError"] != json!(true));
        said += 1;
    }
    killed.kill();
    for number in 0..10 {
        remember(&workspace, &format!("four {number}"));
    }
    for (server, ids) in servers.iter_mut().zip(ids) {
        for id in ids {
            let answer = server.answer(id);
            assert!(answer["result"]["isError"] != json!(true), "{answer}");
        }
    }
    let export = workspace.run(&["memory", "export", "--json"]).json();
    let memories = export["memories"].as_array().unwrap();
    let kept = |name: &str| {
        let texts = memories.iter().map(|it| it["text"].as_str().unwrap());
        texts.filter(|text| text.starts_with(name)).collect::<BTreeSet<_>>().len()
    };
    assert_eq!((kept("one"), kept("two"), kept("four")), (EACH, EACH, 10));
    assert!(kept("three") >= said, "{} kept, {said} said", kept("three"));
    let ids: BTreeSet<_> = memories.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), memories.len());
}

#[test]
fn an_invalid_file_is_refused_with_its_mistakes() {
    let workspace = workspace();
    let file = "# Memories\n\n## 2026-02-30 #a,b\n\n> one\n\ntwo\n\n## 2026-01-01\n\n> fine\n";
    workspace.file("notes.md", file);
    workspace.file("notes.json", "{\n  \"memories\": [{ \"text\": 7 }]\n}\n");
    workspace.file("bytes.md", b"# Todo\n- [ ] \xff\n");
    snapshot!(
        "mistakes",
        &workspace.session(&[
            &["memory", "import", "notes.md"],
            &["memory", "import", "notes.json"],
            &["memory", "import", "bytes.md"],
            &["memory", "import", "absent.md"],
            &["memory", "export", "--caller", "ana"],
        ])
    );
    assert_eq!(own(&workspace), "no memories are stored\n");
}

#[test]
fn no_client_can_export_or_import() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, json!({}));
    for name in ["memory/export", "memory/import"] {
        let answer = client
            .request("tools/call", json!({ "name": name, "arguments": { "format": "json" } }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let run = workspace.tool(name, &json!({ "format": "json" }), &[]);
        assert_ne!(run.code, 0, "{}", run.shown());
    }
}

#[test]
fn ten_thousand_memories_fit_and_can_be_searched() {
    let workspace = workspace();
    let words = ["orders", "fruit", "Fly", "staging", "certificate", "migration", "release"];
    let mut file = "# Memories\n".to_owned();
    for number in 0..10_000 {
        let word = |by: usize| words[number * by % words.len()];
        file += &format!(
            "## 2026-01-01 m{number:012} #{}\n> Note {number}: {} before {}, and then {} again.\n",
            word(1),
            word(2),
            word(3),
            word(5)
        );
    }
    let path = workspace.file("many.md", file);
    let import = workspace.run(&["memory", "import", path.to_str().unwrap()]);
    assert_eq!(import.stderr, "10000 added, 0 changed, 0 unchanged\n");
    let recall = workspace.tool("recall", &json!({ "query": "note 7777" }), &[]).success();
    assert!(recall.starts_with("m000000007777 2026-01-01 #orders  Note 7777: "), "{recall}");
    assert!(recall.ends_with("\n9990 more match\n"), "{recall}");
    let full = workspace.tool("remember", &json!({ "text": "one more" }), &[]);
    assert!(full.stderr.contains("10000 of 10000 keys are used"), "{}", full.shown());
}

#[test]
fn a_tool_from_a_file_never_gets_the_memory() {
    let workspace = workspace();
    let wasm = guest("keep");
    for name in ["memory", "keep"] {
        let tables = format!(
            "[tools.{name}]\nsource = \"local\"\nwasm = {wasm:?}\n\
             [tools.{name}.grants]\nfilesystem = []\nstorage = true\n"
        );
        workspace.own_config(&tables);
        remember(&workspace, "of the user");
        let run = |arguments: Value| workspace.tool(name, &arguments, &[]).success();
        assert_eq!(run(json!({ "action": "list" })), "");
        run(json!({ "action": "set", "key": "m100000000001", "value": "1 0\nforged" }));
    }
    assert_eq!(texts(&own(&workspace)), BTreeSet::from(["of the user"]));
    // Each can be listed and cleared separately.
    let uid = uid(&workspace);
    let names = || {
        let list = workspace.run(&["storage", "list", "--json"]).json();
        list.as_array().unwrap().iter().map(|it| it["tool"].to_string()).collect::<Vec<_>>()
    };
    let own = format!("\"memory/user/{uid}\"");
    assert_eq!(names(), ["\"keep\"", "\"memory\"", &own]);
    workspace.run(&["storage", "clear", "memory", "--yes"]).success();
    assert_eq!(names(), ["\"keep\"", &own]);
    workspace.run(&["storage", "clear", "memory", "--yes"]).success();
    assert_eq!(names(), ["\"keep\""]);
}

#[test]
fn renamed_tools_share_their_memory() {
    let workspace = workspace();
    workspace.config("[tools.note]\nsource = \"builtin\"\nbuiltin = \"remember\"\n");
    let answer = workspace.tool("note", &json!({ "text": "of a renamed tool" }), &[]).success();
    let id = answer.trim_end().strip_prefix("remembered ").unwrap();
    assert!(own(&workspace).ends_with("  of a renamed tool\n"));
    workspace.tool("forget", &json!({ "ids": [id] }), &[]).success();
    assert_eq!(own(&workspace), "no memories are stored\n");
}
