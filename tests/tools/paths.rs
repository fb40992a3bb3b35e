//! A built-in and a local tool have the same execution path and the same results.

use serde_json::{Value, json};

use crate::support::{Workspace, guest};

/// `learn` as part of the binary, and the same component as a local file.
fn both() -> Workspace {
    let workspace = Workspace::new();
    workspace.file("notes/a.md", "A\n");
    workspace.file("notes/b.rs", "fn b() {}\n");
    workspace.config(&format!(
        "[knowledge.team]\nsubjects = \"notes\"\n\
         [tools.local]\nsource = \"local\"\nwasm = {:?}\n\
         [tools.local.grants]\nfilesystem = [{{ host = \"notes\", guest = \"/subjects\" }}]\n\
         [tools.builtin]\nsource = \"builtin\"\nbuiltin = \"learn\"\n",
        guest("learn"),
    ));
    workspace
}

/// The topics that the host injects for the built-in, passed by the caller.
fn with_topic(mut arguments: Value) -> Value {
    arguments["_topic"] = json!({ "id": "team", "title": "team", "disabled": [], "learned": [] });
    arguments
}

#[test]
fn a_built_in_and_a_local_tool_have_the_same_outcomes() {
    let workspace = both();
    let schema_of =
        |name: &str| workspace.kitbag().toolbox().tool(name).unwrap().input_schema.value;
    assert_eq!(schema_of("builtin"), schema_of("local"), "both say it themselves");
    for subjects in [json!(null), json!(["a"]), json!(["**"]), json!(["nothing"])] {
        let mut arguments = json!({ "topic": "team" });
        if !subjects.is_null() {
            arguments["subjects"] = subjects;
        }
        let builtin = workspace.call("builtin", arguments.clone());
        let local = call_unchecked(&workspace, with_topic(arguments));
        assert_eq!(builtin, local);
    }
}

/// Calls the local copy through the host, without checking the schema of its arguments.
fn call_unchecked(workspace: &Workspace, arguments: Value) -> String {
    use kitbag::contract::Limits;
    use kitbag::host::{Call, ComponentSource, Host, HostOptions, RunContext};
    let kitbag = workspace.kitbag();
    let tool = kitbag.toolbox().tool("local").unwrap();
    let host = Host::new(HostOptions::default());
    let (source, context) = (ComponentSource::File(guest("learn").into()), RunContext::default());
    let component = host.component(&source, &Limits::default(), &context).unwrap();
    let call = Call {
        // The name is part of the answer, so both use the same name.
        name: "builtin".into(),
        function: None,
        action: kitbag::contract::Action::Run,
        arguments: arguments.to_string(),
        answers: "{}".into(),
        grants: tool.grants.value,
        guard: std::sync::Arc::default(),
        secrets: Default::default(),
        limits: tool.limits.limits(),
        storage: None,
        tools: None,
    };
    match host.call_blocking(&component, &call, &context).result.unwrap() {
        kitbag::Outcome::Success(content) => content,
        kitbag::Outcome::Error(error) => format!("error: {}", error.message),
        kitbag::Outcome::NeedsInput(question) => question.text,
    }
}

#[test]
fn both_reach_the_same_limits() {
    let workspace = both();
    workspace.file("notes/large.md", "x".repeat(100_000));
    let run = |name: &str, extra: &[&str]| {
        let call = ["run", name, "topic=team", "subjects=**"];
        workspace.run(&[&call, extra].concat())
    };
    let memory = run("builtin", &["--memory", "100KiB"]);
    assert_eq!(memory.code, 5, "{}", memory.shown());
    assert!(
        memory.stderr.contains("limit: memory (100 KiB): give it less data, or a part of it"),
        "{}",
        memory.stderr
    );
}

#[test]
fn no_thread_is_started_before_the_first_call() {
    let workspace = both();
    let kitbag = workspace.kitbag();
    assert_eq!(kitbag.toolbox().summaries().count(), 2);
    kitbag.toolbox().tool("builtin").unwrap();
    assert!(!kitbag.toolbox().host().is_started());
    assert!(!kitbag.toolbox().load("builtin").unwrap().was_compiled());
    crate::support::block_on(kitbag.call("builtin", json!({ "topic": "team" }))).unwrap();
    assert!(kitbag.toolbox().host().is_started());
}
