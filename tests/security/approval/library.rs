//! The library: the callback and native tools.

use std::fs;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use kitbag::contract::ToolDescription;
use kitbag::toolbox::NotApproved;
use kitbag::{Answer, Invocation, NativeCall, NativeTool, Outcome, Question, ToolboxError};
use serde_json::json;

use super::{content, workspace, write};
use crate::support::{CallInTest, Workspace, block_on, guest};

/// Returns the library on the workspace, whose callback answers with `answers` in turn, and the
/// questions that it was asked.
fn asking(
    workspace: &Workspace,
    answers: &[Option<&str>],
) -> (kitbag::Kitbag, Arc<Mutex<Vec<Question>>>) {
    let asked = Arc::<Mutex<Vec<Question>>>::default();
    let mut answers: Vec<_> = answers.iter().rev().map(|it| it.map(str::to_owned)).collect();
    answers.insert(0, None);
    let answers = Arc::new(Mutex::new(answers));
    let seen = Arc::clone(&asked);
    let builder = workspace.builder().on_question(move |question| {
        seen.lock().unwrap().push(question);
        let mut answers = answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
        std::future::ready(answer.flatten().map(Answer::Text))
    });
    (builder.build().unwrap(), asked)
}

#[test]
fn callback_approvals_last_as_long_as_their_answer_states() {
    let workspace = workspace("\"always\"");
    let (kitbag, asked) =
        asking(&workspace, &[Some("no"), Some("yes"), Some("always"), Some("yes")]);
    let call = |text: &str| kitbag.call_in_test("probe", write("a.txt", text));
    let refused =
        "failed: the call of `probe` was not approved: the user declined; nothing was done";
    assert_eq!(call("1"), refused);
    assert_eq!(content(&workspace, "a.txt"), None);
    assert_eq!(call("1"), "write a.txt: 1 byte");
    assert_eq!(call("1"), "write a.txt: 1 byte");
    assert_eq!(asked.lock().unwrap().len(), 3, "one approval is for one call");
    assert_eq!(call("1"), "write a.txt: 1 byte");
    assert_eq!(asked.lock().unwrap().len(), 3, "and these until the process ends");
    assert_eq!(call("2"), "write a.txt: 1 byte");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4, "other arguments are another call");
    let approval = asked[0].approval.as_ref().unwrap();
    assert_eq!((&*approval.tool, approval.is_inner), ("probe", false));
    assert_eq!(approval.line, r#"probe {"do":"write","path":"a.txt","text":"1"}"#);
    assert!(asked[0].is_consent);
    let ids: std::collections::BTreeSet<_> = asked.iter().map(|question| &question.id).collect();
    assert_eq!(ids.len(), 4, "no id is that of another question");
}

#[test]
fn without_an_answer_the_call_is_refused() {
    let workspace = workspace("\"always\"");
    let (silent, _) = asking(&workspace, &[None]);
    for kitbag in [silent, workspace.kitbag()] {
        let error = block_on(kitbag.call("probe", write("a.txt", "x"))).unwrap_err();
        let ToolboxError::NotApproved { tool, why: NotApproved::NobodyToAsk { advice } } = error
        else {
            panic!("{error}")
        };
        assert_eq!(tool, "probe");
        assert!(advice.starts_with("set `approve = \"never\"` under `[tools.probe]` in /"));
    }
    assert_eq!(content(&workspace, "a.txt"), None);
}

#[test]
fn conditional_approval_covers_the_named_arguments() {
    let workspace = workspace("{ when = { path = \"secrets/**\" } }");
    workspace.file("secrets/a", "");
    workspace.file("secrets/b", "");
    let (kitbag, asked) = asking(&workspace, &[Some("always"), Some("no")]);
    assert_eq!(kitbag.call_in_test("probe", write("secrets/a", "1")), "write secrets/a: 1 byte");
    assert_eq!(kitbag.call_in_test("probe", write("secrets/a", "22")), "write secrets/a: 2 bytes");
    assert_eq!(asked.lock().unwrap().len(), 1);
    let text = asked.lock().unwrap()[0].text.clone();
    let covers = "`always` allows, in this session, every call of `probe` with path = \"secrets/a\".\n\
                  Allow this call of `probe`?";
    assert!(text.ends_with(covers), "{text}");
    assert!(kitbag.call_in_test("probe", write("secrets/b", "1")).starts_with("failed: "));
}

#[test]
fn file_approval_covers_the_same_tool_and_access_only() {
    let workspace = Workspace::with_toolsets(&["files", "write"]);
    workspace.own_config("[approve]\ndefault = \"always\"\n");
    let (kitbag, asked) = asking(&workspace, &[Some("yes"), Some("always"), Some("no")]);
    let write = |content: &str| {
        kitbag.call_in_test("write_file", json!({ "path": "a.txt", "content": content }))
    };
    let read = || kitbag.call_in_test("read_file", json!({ "path": "a.txt" }));
    write("one\n");
    // Approval to read is not approval to write.
    read();
    read();
    assert_eq!(asked.lock().unwrap().len(), 2);
    assert!(write("two\n").starts_with("failed: "), "a yes to read is no yes to write");
    assert_eq!(content(&workspace, "a.txt").as_deref(), Some("one\n"));
    let (kitbag, asked) = asking(&workspace, &[Some("always"), Some("no")]);
    let write = |path: &str, content: &str| {
        kitbag.call_in_test("write_file", json!({ "path": path, "content": content }))
    };
    write("a.txt", "two\n");
    write("a.txt", "three\n");
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert_eq!(content(&workspace, "a.txt").as_deref(), Some("three\n"));
    assert!(write("b.txt", "two\n").starts_with("failed: "), "another file is another call");
}

#[test]
fn a_call_with_other_grants_is_asked_again() {
    let workspace = workspace("\"always\"");
    let (kitbag, asked) = asking(&workspace, &[Some("always"), Some("no")]);
    let arguments = json!({ "do": "list", "path": "." });
    let invocation = || Invocation::tool("probe", arguments.clone());
    let tool = kitbag.toolbox().tool("probe").unwrap();
    let read = tool.grants.value.read_only();
    block_on(kitbag.invoke(invocation().with_grants(read.clone()))).unwrap();
    block_on(kitbag.invoke(invocation().with_grants(read))).unwrap();
    assert_eq!(asked.lock().unwrap().len(), 1);
    let error = block_on(kitbag.invoke(invocation())).unwrap_err();
    assert!(matches!(error, ToolboxError::NotApproved { .. }), "{error}");
}

#[test]
fn a_component_swapped_during_approval_is_asked_again() {
    let workspace = Workspace::new();
    let place = |name: &str| {
        let new = workspace.outside().join("new.wasm");
        fs::copy(guest(name), &new).unwrap();
        fs::create_dir_all(workspace.path(".kitbag/tools")).unwrap();
        fs::rename(new, workspace.path(".kitbag/tools/it.wasm")).unwrap();
    };
    place("probe");
    workspace.own_config("[tools.it]\napprove = \"always\"\n");
    let (seen, wasm) = (Arc::new(Mutex::new(0)), workspace.path(".kitbag/tools/it.wasm"));
    let (count, other) = (Arc::clone(&seen), workspace.outside().join("other.wasm"));
    fs::copy(guest("echo"), &other).unwrap();
    let builder = workspace.builder().on_question(move |question| {
        let mut count = count.lock().unwrap();
        *count += 1;
        assert!(question.approval.is_some());
        if *count == 1 {
            fs::copy(&other, other.with_extension("copy")).unwrap();
            fs::rename(other.with_extension("copy"), &wasm).unwrap();
        }
        let answer = if *count == 1 { "yes" } else { "no" };
        std::future::ready(Some(Answer::Text(answer.into())))
    });
    let kitbag = builder.build().unwrap();
    let said = kitbag.call_in_test("it", json!({ "do": "echo", "text": "x" }));
    assert_eq!(
        said,
        "failed: the call of `it` was not approved: the user declined; nothing was done"
    );
    assert_eq!(*seen.lock().unwrap(), 2);
}

/// Native code that calls `probe`, or imitates a question of the host.
struct Native(Option<Question>);

impl NativeTool for Native {
    fn description(&self) -> ToolDescription {
        ToolDescription { name: "native".into(), ..ToolDescription::default() }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        let question = self.0.clone();
        Box::pin(async move {
            match question {
                Some(question) => Outcome::NeedsInput(question),
                None => {
                    let invocation = Invocation::tool("probe", write("a.txt", "x"));
                    match call.call(invocation).await {
                        Ok(outcome) => outcome,
                        Err(error) => Outcome::Success(error.to_string()),
                    }
                }
            }
        })
    }
}

#[test]
fn native_code_cannot_approve_calls_or_imitate_host_questions() {
    let workspace = workspace("\"always\"");
    let (mut inner, asked) = asking(&workspace, &[Some("yes")]);
    inner.add_tool(Native(None)).unwrap();
    let said = inner.call_in_test("native", json!({}));
    assert!(said.contains("needs the approval of a person, but no person can be asked"), "{said}");
    assert_eq!(content(&workspace, "a.txt"), None);
    assert!(asked.lock().unwrap().is_empty());
    let _ = inner.call_in_test("probe", write("b.txt", "x"));
    let real = asked.lock().unwrap()[0].clone();
    let forged = Question { id: "mine".into(), ..real.clone() };
    for question in [real, forged] {
        let (mut forging, asked) = asking(&workspace, &[Some("yes")]);
        forging.add_tool(Native(Some(question))).unwrap();
        let said = forging.call_in_test("native", json!({}));
        assert!(said.contains("are reserved for kitbag's own questions"), "{said}");
        assert!(asked.lock().unwrap().is_empty());
    }
}

#[test]
fn the_users_default_applies_to_tools_of_a_program() {
    let workspace = Workspace::new();
    workspace.own_config("[approve]\ndefault = \"always\"\n");
    let mut kitbag = workspace.kitbag();
    kitbag.add_tool(Native(None)).unwrap();
    kitbag.add_component("bytes", fs::read(guest("echo")).unwrap()).unwrap();
    for tool in ["native", "bytes"] {
        let said = kitbag.call_in_test(tool, json!({ "text": "x" }));
        assert!(said.contains(&format!("the call of `{tool}` needs the approval")), "{said}");
    }
}
