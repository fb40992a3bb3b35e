//! Grants and limits that the embedding program sets in code.

use std::fs;

use kitbag::base::ByteSize;
use kitbag::policy::Access;
use kitbag::{BuildError, ToolConfig};
use serde_json::json;

use crate::support::{CallInTest, Workspace, guest};

#[test]
fn code_overrides_the_files() {
    let workspace = Workspace::new();
    workspace.file("a.txt", "hello");
    fs::create_dir(workspace.outside().join("other")).unwrap();
    workspace.config(
        "[tools.probe.grants]\nfilesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" \
         }]\nhttp = [\"https://a.example/**\"]\n[tools.probe.limits]\noutput = \"2KiB\"\n",
    );
    let config = ToolConfig::new()
        .directory(workspace.outside().join("other"), "/other", Access::ReadWrite)
        .output(ByteSize::bytes(1 << 10));
    let builder = workspace.builder().component("probe", fs::read(guest("probe")).unwrap());
    let kitbag = builder.tool_config("probe", config).build().unwrap();
    let call = |arguments| kitbag.call_in_test("probe", arguments);
    assert_eq!(
        call(json!({ "do": "write", "path": "/other/b.txt", "text": "x" })),
        "write /other/b.txt: 1 byte"
    );
    let read = json!({ "do": "read", "path": "/workspace/a.txt" });
    assert_eq!(call(read), "read /workspace/a.txt: refused (no directory)");
    let long = call(json!({ "do": "echo", "text": "x".repeat(1500) }));
    assert!(long.ends_with("[cut by kitbag: this answer had 1500 bytes]"), "{long}");
    // The files set the other kinds.
    let grants = &kitbag.toolbox().config().tools["probe"].grants.value;
    assert_eq!(grants.http.grants.len(), 1);
}

#[test]
fn code_needs_no_trust_in_the_workspace() {
    let workspace = Workspace::new().untrusted();
    workspace.file("a.txt", "hello");
    let config = ToolConfig::new().no_grants().http("https://a.example/**");
    let builder = workspace.builder().trust_workspace(false);
    let builder = builder.component("probe", fs::read(guest("probe")).unwrap());
    let kitbag = builder.tool_config("probe", config).build().unwrap();
    assert_eq!(kitbag.call_in_test("probe", json!({ "do": "preopens" })), "preopens: none");
    let grants = &kitbag.toolbox().config().tools["probe"].grants.value;
    assert_eq!(grants.http.grants.len(), 1);
}

#[test]
fn mistakes_in_code_are_errors() {
    let workspace = Workspace::new();
    let config = ToolConfig::new().directory("missing", "/a", Access::ReadOnly);
    let builder = workspace.builder().component("probe", fs::read(guest("probe")).unwrap());
    let Err(BuildError::Config(errors)) = builder.tool_config("probe", config).build() else {
        panic!("no error");
    };
    let error = errors.diagnostics()[0].to_string();
    assert!(error.starts_with("Builder::tool_config:3:8:"), "{error}");
    assert!(error.contains("does not exist"), "{error}");
}
