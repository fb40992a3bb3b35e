//! Tools whose components the embedding program passes as bytes.

use std::fs;

use kitbag::host::DiskCache;
use kitbag::{BuildError, ToolboxError};
use serde_json::json;

use crate::support::{CallInTest, Workspace, crafted, guest};

fn bytes(name: &str) -> Vec<u8> {
    fs::read(guest(name)).unwrap()
}

#[test]
fn a_tool_from_bytes_is_listed_described_and_called() {
    let workspace = Workspace::new();
    workspace.file("a.txt", "hello");
    let kitbag = workspace.builder().component("probe", bytes("probe")).build().unwrap();
    let toolbox = kitbag.toolbox();
    let listed: Vec<_> =
        toolbox.summaries().map(|tool| format!("{}: {}", tool.name, tool.source)).collect();
    assert_eq!(listed, ["learn: built-in", "probe: bytes"]);
    let read = |path: &str| kitbag.call_in_test("probe", json!({ "do": "read", "path": path }));
    assert_eq!(read("a.txt"), "read a.txt: 5 bytes: hello");
    let write = json!({ "do": "write", "path": "a.txt", "text": "x" });
    let got = kitbag.call_in_test("probe", write);
    assert!(got.contains("refused"), "{got}");
    // The tool's own description.
    let tool = toolbox.tool("probe").unwrap();
    assert_eq!(tool.title.unwrap().value, "Probe");
    assert_eq!(tool.annotations.read_only_hint, Some(true));
}

#[test]
fn configuration_gives_a_tool_from_bytes_its_grants_and_limits() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path("out")).unwrap();
    workspace.config(
        "[tools.probe]\ndescription = \"mine\"\n\
         [tools.probe.grants]\n\
         filesystem = [{ host = \"out\", guest = \"/out\", mode = \"rw\" }]\n\
         [tools.probe.limits]\noutput = \"1KiB\"\n",
    );
    let kitbag = workspace.builder().component("probe", bytes("probe")).build().unwrap();
    let write = json!({ "do": "write", "path": "/out/a.txt", "text": "x" });
    assert_eq!(kitbag.call_in_test("probe", write), "write /out/a.txt: 1 byte");
    let got = kitbag.call_in_test("probe", json!({ "do": "echo", "text": "x".repeat(3000) }));
    assert!(got.ends_with("[cut by kitbag: this answer had 3000 bytes]"), "{got}");
    assert_eq!(kitbag.toolbox().tool("probe").unwrap().description.unwrap().value, "mine");
    workspace.config("[tools.probe]\nenable = false\n");
    let kitbag = workspace.builder().component("probe", bytes("probe")).build().unwrap();
    let error = kitbag.toolbox().tool("probe").unwrap_err();
    assert!(matches!(error, ToolboxError::Disabled { .. }), "{error}");
}

#[test]
fn untrusted_workspaces_may_restrict_tools_from_bytes() {
    let workspace = Workspace::new().untrusted();
    workspace.config(
        "[tools.probe]\ndescription = \"theirs\"\n\
         [tools.probe.grants]\n\
         filesystem = [{ host = \".\", guest = \"/out\", mode = \"rw\" }]\n\
         [tools.probe.limits]\noutput = \"1KiB\"\n",
    );
    let kitbag = workspace.builder().component("probe", bytes("probe")).build().unwrap();
    let got = kitbag.call_in_test("probe", json!({ "do": "echo", "text": "x".repeat(3000) }));
    assert!(got.ends_with("[cut by kitbag: this answer had 3000 bytes]"), "{got}");
    let write = json!({ "do": "write", "path": "/out/a.txt", "text": "x" });
    let got = kitbag.call_in_test("probe", write);
    assert!(got.contains("refused"), "{got}");
    assert!(!workspace.path("a.txt").exists());
    let description = kitbag.toolbox().tool("probe").unwrap().description.unwrap().value;
    assert!(!description.contains("theirs"), "{description}");
}

#[test]
fn a_tool_from_bytes_is_compiled_once_and_found_in_the_cache() {
    let workspace = Workspace::with_own_cache();
    let build = || workspace.builder().component("probe", bytes("probe")).build().unwrap();
    let first = build();
    assert!(!workspace.cache().exists(), "nothing is compiled before it is needed");
    assert!(first.toolbox().load("probe").unwrap().was_compiled());
    assert!(!build().toolbox().load("probe").unwrap().was_compiled());
    // The same content as a file has the same cache entry.
    workspace.file(".kitbag/tools/other.wasm", bytes("probe"));
    assert!(!workspace.kitbag().toolbox().load("other").unwrap().was_compiled());
    let entries = DiskCache::new(workspace.cache().to_owned()).entries().unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    // Two tools with the same component load it once.
    let two = build().toolbox().with_component("again", bytes("probe")).unwrap();
    let (one, other) = (two.load("probe").unwrap(), two.load("again").unwrap());
    assert!(one.identity() == other.identity());
}

#[test]
fn several_tools_of_one_component_keep_their_names() {
    let workspace = Workspace::new();
    let both = crafted::describing(
        r#"{"tools":[{"name":"add","description":"adds"},{"name":"multiply","description":"multiplies"}]}"#,
    );
    let builder = workspace.builder().component("add", &*both);
    let kitbag = builder.component("multiply", both).build().unwrap();
    let description = |tool: &str| kitbag.toolbox().tool(tool).unwrap().description.unwrap().value;
    assert_eq!((&*description("add"), &*description("multiply")), ("adds", "multiplies"));
}

#[test]
fn invalid_component_bytes_are_an_error_of_the_tool() {
    let workspace = Workspace::new();
    let kitbag = workspace.builder().component("broken", *b"no wasm").build().unwrap();
    let got = kitbag.call_in_test("broken", json!({}));
    assert_eq!(
        got,
        "failed: `broken`: this is not WebAssembly; a tool is a component, built for \
         `wasm32-wasip2`"
    );
}

#[test]
fn tool_names_are_unique() {
    let workspace = Workspace::new();
    let built = |name: &str| workspace.builder().component(name, bytes("echo")).build().err();
    let check = |name: &str, expected: &str| {
        let Some(error) = built(name) else { panic!("`{name}` was taken") };
        let text = workspace.redact(&error.to_string());
        assert!(text.contains(expected), "{text}");
    };
    let taken = "cannot be registered: a tool with this name exists; remove it first";
    check("learn", &format!("the tool `learn` {taken}"));
    check("a b", "the tool `a b` cannot be registered: `a b` is not a tool name");
    // A workspace cannot prevent the program from starting.
    workspace.file(".kitbag/tools/mine.wasm", bytes("echo"));
    workspace.config("[tools.other]\nsource = \"local\"\nwasm = \"x.wasm\"\n");
    let builder = || workspace.builder().component("mine", bytes("echo"));
    let kitbag = builder().component("other", bytes("echo")).build().unwrap();
    let config = kitbag.toolbox().config();
    assert!(config.tools["mine"].is_enabled() && !config.tools["other"].is_enabled());
    let (_, errors) = builder().component("other", bytes("echo")).build_faulty();
    let errors: String = errors.iter().map(ToString::to_string).collect();
    for expected in [
        "local tool `mine` has the name of a tool of the embedding program; rename it",
        "tool `other` may not have `wasm`: the embedding program provides its component",
        "tool `other` may not have `source`: the embedding program provides its component",
    ] {
        assert!(errors.contains(expected), "{errors}");
    }
    let twice = Workspace::new();
    let builder = twice.builder().component("a", bytes("echo")).component("a", bytes("echo"));
    assert!(matches!(builder.build(), Err(BuildError::Tool(ToolboxError::Register { .. }))));
    // Both in one builder, for a report.
    let builder = twice.builder().component("learn", bytes("echo")).component("a b", *b"");
    let (kitbag, errors) = builder.build_faulty();
    assert!(kitbag.is_some());
    assert_eq!(errors.len(), 2, "{errors:?}");
}

#[test]
fn the_bytes_example_compiles_into_the_usual_cache() {
    let cache = tempfile::tempdir().unwrap();
    let directory = cache.path().join("kitbag");
    let echo = guest("echo");
    let stdout = crate::support::cargo_run_with(
        &["--example", "bytes", "--", echo.to_str().unwrap()],
        &[("KITBAG_CACHE_DIR", directory.to_str().unwrap())],
    );
    assert_eq!(stdout, "Success(\"{\\\"text\\\":\\\"hello\\\"}\")\n");
    assert_eq!(DiskCache::new(directory).entries().unwrap().len(), 1);
}
