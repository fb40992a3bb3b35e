//! Built-in tools as such: several of one component, and what configuration says of them.

use std::fs;

use kitbag::config::{Sources, load};
use kitbag::contract::Limits;
use kitbag::host::{ComponentSource, EmbeddedArtifact, Host, HostOptions, RunContext};
use kitbag::toolbox::Builtin;
use kitbag::{Arguments, CallContext, Invocation, NoAnswers, Outcome, Toolbox, ToolboxError};

use crate::support::{Workspace, guest};

/// The tools of a guest, as if its component were part of the binary.
fn builtins(component: &str, tools: &[&'static str]) -> &'static [Builtin] {
    let path = guest(component);
    let content: &'static [u8] = fs::read(&path).unwrap().leak();
    let host = Host::new(HostOptions::default());
    let loaded = host
        .component(&ComponentSource::File(path.into()), &Limits::default(), &RunContext::default())
        .unwrap();
    let described = loaded.description().unwrap();
    let artifact = EmbeddedArtifact::uncompiled("several", content);
    let tool = |name: &&'static str| Builtin {
        name,
        toolset: "several",
        artifact,
        description: serde_json::to_string(described.tool(name).unwrap()).unwrap().leak(),
        workspace: None,
        given_by_call: &[],
    };
    tools.iter().map(tool).collect::<Vec<_>>().leak()
}

fn toolbox(workspace: &Workspace, builtins: &'static [Builtin]) -> Toolbox {
    let declared: Vec<_> = builtins.iter().map(Builtin::declaration).collect();
    let sources = Sources { start: workspace.root(), builtins: &declared, ..Sources::default() };
    Toolbox::new(Host::new(HostOptions::default()), load(&sources).unwrap(), builtins)
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
    // The component is compiled once for all of them.
    let (text, error) =
        (toolbox.load("text").unwrap(), toolbox.load("test_error_handling").unwrap());
    assert!(text.identity() == error.identity());
    // It knows each by its own name, whatever the configuration calls it.
    let answer = |name: &str| {
        let invocation = Invocation::tool(name, Arguments::default());
        let ended = toolbox.call_blocking(invocation, CallContext::default(), &mut NoAnswers);
        ended.unwrap().completion().unwrap().result.unwrap()
    };
    assert!(matches!(answer("text"), Outcome::Success(_)));
    assert!(matches!(answer("test_error_handling"), Outcome::Error(_)));
}

#[test]
fn a_built_in_is_narrowed_renamed_and_taken_away_by_configuration() {
    let workspace = Workspace::new();
    workspace.file("notes/rules.md", "Be kind.\n");
    let knowledge = "[knowledge.team]\nsubjects = \"notes\"\n";
    workspace.config(&format!(
        "{knowledge}[tools.study]\nsource = \"builtin\"\nbuiltin = \"learn\"\n\
         limits.output = \"40B\"\n\
         grants.filesystem = [{{ host = \"notes\", guest = \"/more\" }}]\n"
    ));
    let run = workspace.run(&["run", "study", "topic=team", "subjects=rules"]);
    assert_eq!((run.code, &*run.stdout), (0, "Be kind.\n"), "{}", run.shown());
    assert_eq!(workspace.run(&["run", "learn", "topic=team"]).code, 2);
    let described = workspace.run(&["describe", "study"]).stdout;
    for line in ["  ro  /more ← <workspace>/notes", "  ro  /subjects ← as the call says"] {
        assert!(described.contains(line), "{described}");
    }
    workspace.config(&format!("{knowledge}[tools.learn]\nenable = false\n"));
    assert_eq!(workspace.listed(), [] as [serde_json::Value; 0]);
    assert_eq!(workspace.run(&["run", "learn", "topic=team"]).code, 2);
}

#[test]
fn a_grant_that_a_tool_asks_for_and_does_not_have_is_named_with_what_would_give_it() {
    let workspace = Workspace::new();
    workspace.file(".kitbag/tools/mine.wasm", fs::read(guest("learn")).unwrap());
    let missing = "tool `mine` asks for a grant that it does not have; to give it, add `{ host = \
                   \"DIRECTORY\", guest = \"/subjects\", mode = \"ro\" }` to \
                   `tools.mine.grants.filesystem`";
    let check = workspace.run(&["check"]);
    let warning = format!("warning: {missing}, which replaces the default\n");
    assert_eq!((check.code, &*check.stderr), (0, &*warning), "{}", check.shown());
    let check = workspace.run(&["check", "--json"]).json();
    assert_eq!(
        check["warnings"],
        serde_json::json!([format!("{missing}, which replaces the default")])
    );
    let run = workspace.run(&["run", "mine", "topic=team"]);
    assert_eq!(run.code, 1, "{}", run.shown());
    assert!(run.stderr.contains(missing), "{}", run.shown());
    workspace.file("notes/rules.md", "Be kind.\n");
    workspace.config(
        "[tools.mine]\ngrants.filesystem = [{ host = \"notes\", guest = \"/subjects\" }]\n",
    );
    let check = workspace.run(&["check"]);
    assert_eq!((check.code, &*check.stderr), (0, ""), "{}", check.shown());
}
