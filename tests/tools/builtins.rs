//! Built-in tools in general: several tools of one component, and their configuration.

use std::fs;
use std::sync::Arc;

use kitbag::config::{Origin, Sourced, Sources, TrustSource, load};
use kitbag::contract::Limits;
use kitbag::host::{ComponentSource, EmbeddedArtifact, Host, HostOptions, RunContext};
use kitbag::toolbox::Builtin;
use kitbag::{Arguments, CallContext, Invocation, NoAnswers, Outcome, Toolbox, ToolboxError};

use crate::support::mcp::Client;
use crate::support::{Workspace, guest, snapshot};

/// The tools of a guest, as if its component were part of the binary.
fn builtins(component: &str, tools: &[&'static str]) -> &'static [Builtin] {
    let path = guest(component);
    let component = EmbeddedArtifact::pack(&fs::read(&path).unwrap(), &[], 1).unwrap().leak();
    let host = Host::new(HostOptions::default());
    let loaded = host
        .component(&ComponentSource::File(path.into()), &Limits::default(), &RunContext::default())
        .unwrap();
    let described = loaded.description().unwrap();
    let artifact = EmbeddedArtifact::uncompiled("several", component);
    let tool = |name: &&'static str| {
        let description = serde_json::to_string(described.tool(name).unwrap()).unwrap().leak();
        Builtin::new(name, "several", artifact, description, "{}")
    };
    tools.iter().map(tool).collect::<Vec<_>>().leak()
}

fn toolbox(workspace: &Workspace, builtins: &'static [Builtin]) -> Toolbox {
    let declared: Vec<_> = builtins.iter().map(|builtin| builtin.declaration.clone()).collect();
    let trust = TrustSource::Said(Sourced { value: true, origin: Origin::Caller });
    let sources =
        Sources { start: workspace.root(), builtins: &declared, trust, ..Sources::default() };
    Toolbox::new(
        Host::new(HostOptions::default()),
        load(&sources).unwrap(),
        builtins,
        Arc::default(),
        None,
    )
}

#[test]
fn one_component_serves_several_tools() {
    let workspace = Workspace::new();
    workspace.config("[tools.text]\nsource = \"builtin\"\nbuiltin = \"test_simple_text\"\n");
    let tools = ["test_simple_text", "test_error_handling"];
    let toolbox = toolbox(&workspace, builtins("conformance", &tools));
    let listed: Vec<_> = toolbox.summaries().map(|tool| tool.name.to_string()).collect();
    assert_eq!(listed, ["test_error_handling", "text"]);
    let description = |name: &str| toolbox.tool(name).unwrap().description.unwrap().value;
    assert_eq!(description("text"), "A text.");
    assert_eq!(description("test_error_handling"), "An error.");
    assert!(matches!(toolbox.tool("test_simple_text"), Err(ToolboxError::UnknownTool { .. })));
    // The component is compiled once for both tools.
    let (text, error) =
        (toolbox.load("text").unwrap(), toolbox.load("test_error_handling").unwrap());
    assert!(text.identity() == error.identity());
    // The component receives the tool's own name, regardless of its name in the configuration.
    let answer = |name: &str| {
        let invocation = Invocation::tool(name, Arguments::default());
        let ended = toolbox.call_blocking(invocation, CallContext::default(), &mut NoAnswers);
        ended.unwrap().completion().unwrap().result.unwrap()
    };
    assert!(matches!(answer("text"), Outcome::Success(_)));
    assert!(matches!(answer("test_error_handling"), Outcome::Error(_)));
}

#[test]
fn file_tools_name_their_directories_to_models() {
    let workspace = Workspace::new();
    let mut tools = builtins("conformance", &["test_simple_text", "test_error_handling"]).to_vec();
    tools[0].declaration.workspace = Some(kitbag::policy::Access::ReadOnly);
    let tools = tools.leak();
    let description = |config: &str| {
        workspace.config(config);
        let tool = toolbox(&workspace, tools).tool("test_simple_text").unwrap();
        tool.description.unwrap().value
    };
    assert_eq!(description(""), "A text.\nDirectories: /workspace (read-only)");
    assert_eq!(
        description(
            "[tools.test_simple_text.grants]\n\
             filesystem = [{ host = \".\", guest = \"/w\", mode = \"rw\" }]\n"
        ),
        "A text.\nDirectories: /w (writable)"
    );
    let ejected = toolbox(&workspace, tools).eject("test_simple_text").unwrap();
    assert!(ejected.component == fs::read(guest("conformance")).unwrap(), "another component");
    assert_eq!(
        ejected.manifest,
        "replaces = \"test_simple_text\"\n\n[grants]\n\
         filesystem = [{ host = \".\", guest = \"/w\", mode = \"rw\" }]\n"
    );
    let untouched = toolbox(&workspace, tools).tool("test_error_handling").unwrap();
    assert_eq!(untouched.description.unwrap().value, "An error.");
}

#[test]
fn a_server_offers_the_chosen_tools() {
    let workspace = Workspace::with_probe("");
    let client = |arguments: &[&str]| {
        let mut client =
            Client::start(&workspace, arguments).after_handshake(serde_json::json!({}));
        let list = client.request("tools/list", serde_json::json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(client(&[]), ["learn", "probe"]);
    assert_eq!(client(&["--tools", "pro*"]), ["probe"]);
    let unknown = workspace.run(&["serve", "--tools", "prob"]);
    assert_eq!(unknown.code, 4, "{}", unknown.shown());
    assert!(unknown.stderr.contains("did you mean `probe`?"), "{}", unknown.shown());
}

/// The title, and the hints that are true.
fn hints(tool: &serde_json::Value) -> String {
    let hint = |key: &str| tool["annotations"][key].as_bool().unwrap_or_else(|| panic!("{tool}"));
    let hints = [
        ("readOnlyHint", "read-only"),
        ("destructiveHint", "destructive"),
        ("openWorldHint", "open world"),
    ];
    let mut hints: Vec<_> = hints.into_iter().filter(|(key, _)| hint(key)).map(|it| it.1).collect();
    if !hint("readOnlyHint") {
        hints.insert(0, "changes");
    }
    let title = tool["title"].as_str().unwrap_or_else(|| panic!("no title: {tool}"));
    let name = tool["name"].as_str().unwrap();
    format!("{name}: {title}: {}\n", hints.join(", "))
}

#[test]
fn clients_see_titles_and_hints_of_built_ins() {
    let mut toolsets = kitbag::config::TOOLSETS.to_vec();
    toolsets.push("write");
    let workspace = Workspace::with_toolsets(&toolsets);
    // Additional methods that the tool does not use do not change its hints.
    workspace.own_config(
        "[tools.fetch.grants]\nhttp = [{ url = \"https://docs.rs/**\", methods = \"*\" }]\n",
    );
    let mut client = Client::with_handshake(&workspace, serde_json::json!({}));
    let listed = client.request("tools/list", serde_json::json!({}))["result"]["tools"].clone();
    let listed: String = listed.as_array().unwrap().iter().map(hints).collect();
    snapshot!("hints", &listed);
}
