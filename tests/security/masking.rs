//! Keys and tokens in the results of calls: masked for every tool, regardless of its grants, and
//! unchanged inside a call.

use std::fs;
use std::os::unix::fs::symlink;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use kitbag::base::ByteSize;
use kitbag::config::LimitFlags;
use kitbag::contract::ToolDescription;
use kitbag::{Cancellation, Invocation, NativeCall, NativeTool, Outcome, Question, ToolboxError};
use kitbag_test_servers::{Answer, Behaviour, Server};
use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{CallInTest, Workspace, block_on, guest, probe};

/// The keys and their masks.
fn keys() -> [(String, &'static str); 3] {
    let data = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let block = |line: &str| format!("-----{line} RSA PRIVATE KEY-----");
    [
        (format!("ghp_{}", "notARealToken01234567890123456789012"), "[kitbag-mask:github-token]"),
        (format!("glpat-{}", "notARealKey1234567890"), "[kitbag-mask:gitlab]"),
        (
            format!("{}\n{data}\n{data}\n{}", block("BEGIN"), block("END")),
            "[kitbag-mask:private-key]",
        ),
    ]
}

/// A file with each key, and its masked content.
fn notes() -> (String, String) {
    let all = |of: fn(&(String, &'static str)) -> String| {
        let keys: Vec<_> = keys().iter().map(of).collect();
        format!("first {}\nsecond {}\n{}\nlast\n", keys[0], keys[1], keys[2])
    };
    (all(|(key, _)| key.clone()), all(|(_, mask)| (*mask).to_owned()))
}

fn workspace() -> Workspace {
    let workspace =
        Workspace::with_toolsets(&["files", "search", "python", "memory", "write", "text"]);
    workspace.file("notes.txt", notes().0);
    workspace.config(&probe(""));
    workspace
}

#[track_caller]
fn check_masked(shown: &str) {
    for (key, _) in keys() {
        for part in key.lines() {
            assert!(
                !part.contains("not") && !part.starts_with("MII") || !shown.contains(part),
                "{shown}"
            );
        }
    }
}

#[test]
fn every_tool_answers_with_masks_regardless_of_grants() {
    let workspace = workspace();
    let [(token, mask), ..] = keys();
    workspace.tool("remember", &json!({ "text": format!("the key is {token}") }), &[]).success();
    let (_, masked) = notes();
    let calls = [
        ("read_file", json!({ "path": "notes.txt" })),
        ("search_files", json!({ "pattern": "ghp_|glpat" })),
        ("python", json!({ "code": "print(read_file(path='notes.txt'))" })),
        ("recall", json!({ "query": "key" })),
        ("probe", json!({ "do": "echo", "text": notes().0 })),
        ("probe", json!({ "do": "fail", "message": token, "trace": [token] })),
    ];
    let mut client = Client::with_handshake(&workspace, json!({}));
    for (tool, arguments) in calls {
        let run = workspace.run(&["run", tool, "--args", &arguments.to_string()]);
        check_masked(&run.shown());
        assert!(run.shown().contains(mask), "{tool}: {}", run.shown());
        let json = workspace.run(&["--json", "run", tool, "--args", &arguments.to_string()]);
        check_masked(&json.shown());
        assert!(json.json()["leaks"][0]["masked"] == true, "{tool}: {}", json.shown());
        let result = client.call(tool, arguments.clone());
        check_masked(&result.to_string());
        assert!(result.to_string().contains(mask), "{tool}: {result}");
        assert_eq!(result["_meta"]["kitbag/leaks"][0]["masked"], true, "{tool}: {result}");
        if tool == "recall" {
            // The library has no state directory.
            continue;
        }
        let called = workspace.call(tool, arguments);
        check_masked(&called);
        assert!(called.contains(mask), "{tool}: {called}");
    }
    let shown = workspace.run(&["run", "read_file", "path=notes.txt"]);
    assert!(shown.stdout.contains(&masked[..40]), "{}", shown.shown());
    assert!(shown.stderr.contains("a token of GitHub in the answer is masked"), "{}", shown.stderr);
}

#[test]
fn reports_and_emitted_content_are_masked() {
    let workspace = workspace();
    let [(token, mask), ..] = keys();
    let (kitbag, heard) = workspace.kitbag_with_ears();
    let call = |arguments: Value| block_on(kitbag.complete("probe", arguments)).unwrap();
    call(json!({ "do": "log", "text": token, "then": "panic", "message": token }));
    call(json!({ "do": "progress", "steps": ["1"], "text": token }));
    // The limit for messages would truncate the key.
    let long = format!("{}{token}", "x ".repeat(2038));
    call(json!({ "do": "log", "text": long }));
    let (logs, progress) = heard.take();
    check_masked(&format!("{logs:?} {progress:?}"));
    assert!(logs[0].1.contains(mask), "{logs:?}");
    assert!(progress[0].message.as_ref().unwrap().contains(mask), "{progress:?}");
    for kind in ["text", "link"] {
        let emitted = json!({ "do": "emit", "kind": kind, "data": token, "name": token,
            "uri": format!("file:///{token}"), "title": token });
        let completion = call(emitted);
        check_masked(&format!("{completion:?}"));
        assert!(format!("{:?}", completion.emitted).contains(mask), "{completion:?}");
    }
    let printed = call(json!({ "do": "print", "text": token, "to": "both" }));
    check_masked(&format!("{printed:?}"));
    let trapped = call(json!({ "do": "panic", "message": token }));
    check_masked(&format!("{trapped:?}"));
    let asked = call(json!({ "do": "ask", "text": format!("Use {token}?"), "default": token }));
    check_masked(&format!("{asked:?}"));
    assert!(format!("{:?}", asked.result).contains(mask), "{asked:?}");
}

#[test]
fn every_string_of_an_answer_is_masked() {
    let workspace = workspace();
    let [(token, mask), ..] = keys();
    let client = Client::start(&workspace, &["--log", "info"]);
    let mut client = client.after_handshake(json!({}));
    let mut check = |arguments: Value| {
        let answer = client.call("probe", arguments.clone()).to_string();
        assert!(!answer.contains(&token) && answer.contains(mask), "{arguments}: {answer}");
    };
    for kind in ["image", "audio", "text", "blob", "link"] {
        check(json!({ "do": "emit", "kind": kind, "mime": format!("text/{token}") }));
    }
    check(json!({ "do": "ask", "answer_type": token }));
    check(json!({ "do": "ask", "answer_type": json!({ "form": [{ "id": token }] }).to_string() }));
    check(json!({ "do": token }));
    let (_, logged) = client.close();
    assert!(!logged.contains(&token), "{logged}");
    assert!(logged.contains(mask), "{logged}");
}

#[test]
fn tools_that_write_or_run_code_refuse_masks() {
    let workspace = workspace();
    workspace.file("a.txt", "a\n");
    let [(_, mask), ..] = keys();
    let refused = [
        ("write_file", json!({ "path": "b.txt", "content": format!("KEY={mask}\n") }), "/content"),
        (
            "edit_file",
            json!({ "path": "a.txt", "edits": [{ "old_text": "a", "new_text": mask }] }),
            "/edits/0/new_text",
        ),
        ("python", json!({ "code": format!("print('{mask}')") }), "/code"),
        ("remember", json!({ "text": mask }), "/text"),
    ];
    let mut client = Client::with_handshake(&workspace, json!({}));
    for (tool, arguments, pointer) in refused {
        let run = workspace.run(&["run", tool, "--args", &arguments.to_string()]);
        assert_eq!(run.code, 2, "{}", run.shown());
        let named = format!("`{pointer}` of `{tool}` contains `{mask}`");
        assert!(run.stderr.contains(&named), "{}", run.shown());
        assert!(run.stderr.contains("kitbag put in place of a value"), "{}", run.shown());
        let result = client.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.to_string().contains(&named), "{result}");
    }
    assert!(!workspace.path("b.txt").exists());
    assert_eq!(fs::read_to_string(workspace.path("a.txt")).unwrap(), "a\n");
    // Reading tools may search for a mask, and a file that contains one can be copied inside a
    // call.
    let found = workspace.call("search_files", json!({ "pattern": "kitbag-mask:" }));
    assert!(!found.starts_with("failed"), "{found}");
    workspace.file("masked.txt", mask);
    let code = "text = read_file(path='masked.txt')\n\
                write_file(path='copy.txt', content=text.split('\\n', 1)[1])";
    workspace.call("python", json!({ "code": code }));
    assert_eq!(fs::read_to_string(workspace.path("copy.txt")).unwrap().trim_end(), mask);
}

#[test]
fn requests_with_generic_findings_are_refused() {
    let server = Server::start(Behaviour::Answer(Answer::ok("text/plain", "got it".to_owned())));
    let workspace = Workspace::new();
    let wasm = guest("request");
    workspace.own_config(&format!(
        "[tools.request]\nsource = \"local\"\nwasm = {wasm:?}\n\
         grants.http = [{{ url = \"{}/**\", methods = [\"GET\", \"POST\"] }}]\n",
        server.url()
    ));
    let call = |arguments: Value| {
        workspace.run(&["run", "request", "--verbose", "--args", &arguments.to_string()])
    };
    for header in [
        "x-a: password = \"hunter2hunter2\"",
        "x-a: postgres://app:S3cretHorse9@db.internal/app",
        "authorization: Bearer 0123456789abcdef0123456789abcdef",
        "x-a: Basic YWRhOmh1bnRlcjJodW50ZXIy",
    ] {
        let done = call(json!({ "url": server.url(), "headers": [header] }));
        assert!(done.stderr.contains("contains what looks like"), "{header}: {}", done.shown());
    }
    // In the encoding of a query.
    let query = "?u=postgres%3A%2F%2Fapp%3AS3cretHorse9%40db.internal%2Fapp";
    let done = call(json!({ "url": format!("{}/{query}", server.url()) }));
    assert!(done.stderr.contains("the query contains what looks like"), "{}", done.shown());
    assert!(server.seen().requests.is_empty());
    let done = call(json!({ "url": server.url(), "headers": ["x-a: password = \"changeme\""] }));
    assert_eq!(done.code, 0, "{}", done.shown());
}

#[test]
fn documents_and_structured_content_are_masked() {
    let workspace = workspace();
    let [(token, mask), ..] = keys();
    workspace.file("kb/keys.md", format!("# Keys\n\nThe key is {token}.\n"));
    workspace.config("[knowledge.team]\nsubjects = \"kb\"\nlearned = [\"keys\"]\n");
    let learned = workspace.call("learn", json!({ "topic": "team", "subjects": "keys" }));
    let mut client = Client::with_handshake(&workspace, json!({}));
    let resource = client.request("resources/read", json!({ "uri": "kb://team/keys" }));
    let prompt = client.request("prompts/get", json!({ "name": "knowledge" }));
    for shown in [learned, resource.to_string(), prompt.to_string()] {
        check_masked(&shown);
        assert!(shown.contains(mask), "{shown}");
    }
    // The answer of `file_info` has an output schema, and contains the target of a link.
    symlink(&token, workspace.path("link")).unwrap();
    let result = client.call("file_info", json!({ "path": "link" }));
    check_masked(&result.to_string());
    assert!(result["structuredContent"].is_object(), "{result}");
    assert!(result["structuredContent"].to_string().contains(mask), "{result}");
}

/// A native tool that answers with a key, and one that reads this answer.
struct Native {
    name: &'static str,
    heard: Arc<Mutex<String>>,
}

impl NativeTool for Native {
    fn description(&self) -> ToolDescription {
        ToolDescription { name: self.name.into(), ..ToolDescription::default() }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        Box::pin(async move {
            let [(token, _), ..] = keys();
            if self.name == "inner" {
                return Outcome::Success(token);
            }
            let answer = call.call(Invocation::tool("inner", json!({}))).await.unwrap();
            let Outcome::Success(text) = answer else { panic!("{answer:?}") };
            self.heard.lock().unwrap().clone_from(&text);
            Outcome::Success(format!("the other one says {text}"))
        })
    }
}

#[test]
fn native_tools_read_unmasked_answers_and_return_masks() {
    let [(token, mask), ..] = keys();
    let heard = Arc::<Mutex<String>>::default();
    let tool = |name| Native { name, heard: Arc::clone(&heard) };
    let workspace = Workspace::new();
    let builder = workspace.builder().tool(tool("inner")).tool(tool("outer"));
    let kitbag = builder.build().unwrap();
    assert_eq!(kitbag.call_in_test("inner", json!({})), mask);
    assert_eq!(kitbag.call_in_test("outer", json!({})), format!("the other one says {mask}"));
    assert_eq!(*heard.lock().unwrap(), token);
    let error = kitbag.call_blocking("inner", json!({ "a": mask }), &Cancellation::default());
    assert!(matches!(error, Err(ToolboxError::Masked { .. })), "{error:?}");
}

#[test]
fn a_question_with_a_key_in_its_options_is_withheld() {
    struct Asking;
    impl NativeTool for Asking {
        fn description(&self) -> ToolDescription {
            ToolDescription { name: "asking".into(), ..ToolDescription::default() }
        }
        fn call<'a>(&'a self, _: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
            let [(token, _), ..] = keys();
            let answer_type = json!({
                "select": { "options": [{ "value": token, "title": "that one" }] },
            });
            let answer_type = answer_type.to_string().parse().unwrap();
            let question = Question {
                id: "which".into(),
                text: "Which one?".into(),
                answer_type,
                default: None,
                is_consent: false,
                class: None,
                asker: None,
                approval: None,
            };
            Box::pin(async { Outcome::NeedsInput(question) })
        }
    }
    let workspace = Workspace::new();
    let kitbag = workspace.builder().tool(Asking).build().unwrap();
    let answer = kitbag.call_in_test("asking", json!({}));
    assert!(answer.contains("the question is withheld"), "{answer}");
    check_masked(&answer);
}

#[test]
fn a_key_truncated_by_a_limit_is_masked() {
    let workspace = workspace();
    let [(token, _), ..] = keys();
    let text = format!("{}{token}{}", "x ".repeat(600), " y".repeat(100));
    let kitbag = workspace.kitbag();
    for limit in 1_240..1_300 {
        let output = Some(ByteSize::bytes(limit));
        let limits = LimitFlags { output, ..LimitFlags::default() };
        let call = Invocation::tool("probe", json!({ "do": "echo", "text": text }));
        let completion = block_on(kitbag.invoke(call.with_limits(limits))).unwrap();
        let shown = format!("{:?}", completion.result);
        assert!(
            shown.contains("[cut by kitbag") && !shown.contains("ghp_notA"),
            "{limit}: {shown}"
        );
    }
}
