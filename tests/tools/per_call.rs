//! Grants and limits of one call: they only restrict those of the tool.

use std::os::unix::fs::symlink;

use kitbag::base::ByteSize;
use kitbag::config::LimitFlags;
use kitbag::policy::{Access, DirectoryGrant, Grants, ToolGrant, ToolGrants};
use kitbag::{Invocation, Kitbag, Outcome};
use serde_json::{Value, json};

use crate::support::{Workspace, block_on};

/// The tool `probe`, which may write the workspace.
fn workspace() -> Workspace {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\n\
         filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n\
         [knowledge.team]\nsubjects = \"notes\"\n",
    );
    workspace.file("docs/a.txt", "a document");
    workspace.file("secret.txt", "not for this call");
    workspace.file("notes/rules.md", "Be kind.\n");
    workspace
}

/// A grant of one directory for a call.
fn granted(workspace: &Workspace, relative: &str, guest: &str, access: Access) -> Grants {
    // Joining `.` would keep it in the path.
    let root = workspace.root().canonicalize().unwrap();
    let host = if relative.is_empty() { root } else { root.join(relative) };
    let guest = guest.parse().unwrap();
    Grants::from(vec![DirectoryGrant {
        host,
        guest,
        access,
        include: Vec::new(),
        protected: None,
        identity: None,
    }])
}

/// The result of a call, in one sentence.
fn called(kitbag: &Kitbag, invocation: Invocation) -> String {
    match block_on(kitbag.invoke(invocation)) {
        Err(error) => format!("failed: {error}"),
        Ok(completion) => match completion.result {
            Ok(Outcome::Success(content)) => content,
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("failed: {error}"),
        },
    }
}

fn probe(arguments: Value) -> Invocation {
    Invocation::tool("probe", arguments)
}

#[test]
fn a_call_has_only_its_own_grants() {
    let workspace = workspace();
    let kitbag = workspace.kitbag();
    let docs = || granted(&workspace, "docs", "/workspace", Access::ReadOnly);
    let call = |arguments| called(&kitbag, probe(arguments).with_grants(docs()));
    let got = call(json!({ "do": "read", "path": "/workspace/a.txt" }));
    assert_eq!(got, "read /workspace/a.txt: 10 bytes: a document");
    let got = call(json!({ "do": "read", "path": "/workspace/secret.txt" }));
    assert!(got.contains("refused"), "{got}");
    let got = call(json!({ "do": "write", "path": "/workspace/a.txt", "text": "x" }));
    assert!(got.contains("refused"), "{got}");
    // Without any grants; the next call has the tool's grants again.
    let read = json!({ "do": "read", "path": "/workspace/secret.txt" });
    let got = called(&kitbag, probe(read.clone()).with_grants(Grants::default()));
    assert_eq!(got, "read /workspace/secret.txt: refused (no directory)");
    let got = called(&kitbag, probe(read));
    assert_eq!(got, "read /workspace/secret.txt: 17 bytes: not for this call");
}

#[test]
fn a_call_never_gets_more_grants_than_its_tool() {
    let workspace = workspace();
    let read_only = Workspace::with_probe("");
    read_only.file("docs/a.txt", "a document");
    symlink(workspace.outside(), workspace.path("out")).unwrap();
    symlink("notes", workspace.path("other-notes")).unwrap();
    std::fs::create_dir_all(workspace.path(".git")).unwrap();
    for name in ["HEAD", "config", "objects/x", "refs/x"] {
        workspace.file(&format!("bare/{name}"), "");
    }
    let write = json!({ "do": "write", "path": "/workspace/new.md", "text": "attack" });
    let check = |of: &Workspace, relative: &str, guest: &str, access: Access, reason: &str| {
        let grants = granted(of, relative, guest, access);
        let got = called(&of.kitbag(), probe(write.clone()).with_grants(grants));
        let got = of.redact(&got);
        let is_named = got.starts_with("failed: a call of `probe` cannot be granted `");
        assert!(is_named && got.contains(reason), "{relative}: {got}");
        assert!(got.ends_with("; request less, or grant the tool more"), "{got}");
    };
    let write_access = Access::ReadWrite;
    let own = "the tool has `rw  /workspace ← <workspace>`";
    check(&workspace, "..", "/workspace", write_access, own);
    check(&workspace, "docs/../..", "/workspace", write_access, own);
    check(&workspace, "", "/elsewhere", write_access, own);
    let read = "the tool has `ro  /workspace ← <workspace>`";
    check(&read_only, "", "/workspace", write_access, read);
    check(&read_only, "docs", "/workspace", write_access, read);
    // Links to the outside, and links to protected files.
    check(&workspace, "out", "/workspace", write_access, "symbolic link");
    check(&workspace, "out/workspace/docs", "/workspace", Access::ReadOnly, "symbolic link");
    check(&workspace, "other-notes", "/workspace", write_access, "symbolic link");
    // Naming these in a grant would open them.
    check(&workspace, "notes", "/workspace", write_access, "is a topic");
    check(&workspace, ".git", "/workspace", write_access, "needs a grant of the tool's own");
    check(&workspace, ".kitbag", "/workspace", Access::ReadOnly, "needs a grant of the tool's own");
    check(&workspace, "bare", "/workspace", write_access, "looks like a git repository");
    check(&workspace, "nowhere", "/workspace", write_access, "nowhere");
    assert!(!workspace.path("notes/new.md").exists());
    assert!(!workspace.outside().join("new.md").exists());
    // Within the grants of the tool.
    let grants = granted(&workspace, "docs", "/workspace/docs", write_access);
    let write = json!({ "do": "write", "path": "/workspace/docs/new.md", "text": "x" });
    let got = called(&workspace.kitbag(), probe(write).with_grants(grants));
    assert_eq!(got, "write /workspace/docs/new.md: 1 byte");
}

#[test]
fn a_call_can_only_restrict_the_callable_tools() {
    let workspace = Workspace::with_probe("");
    workspace.own_config(
        "[ceiling.grants]\ntools = [\"learn\"]\n\
         [tools.probe.grants]\nfilesystem = []\n\
         tools = { topic = { tool = \"learn\", rate = \"2/s\" } }\n",
    );
    let kitbag = workspace.kitbag();
    let call = |alias: &str, tool: &str, rate: Option<&str>| {
        let rate = rate.map(|rate| rate.parse().unwrap());
        let grant = ToolGrant { rate, ..ToolGrant::new(tool.parse().unwrap()) };
        let tools = ToolGrants::aliases([(alias.parse().unwrap(), grant)]);
        let grants = Grants { tools, ..Grants::default() };
        called(&kitbag, probe(json!({ "do": "echo", "text": "x" })).with_grants(grants))
    };
    assert_eq!(call("topic", "learn", Some("1/s")), "x");
    let refused = |grant: &str| {
        format!(
            "failed: a call of `probe` cannot be granted `{grant}`: the tool has `tool topic → \
             learn, at most 2/s`; request less, or grant the tool more"
        )
    };
    assert_eq!(call("topic", "learn", None), refused("tool topic → learn"));
    assert_eq!(call("topic", "probe", Some("1/s")), refused("tool topic → probe, at most 1/s"));
    assert_eq!(call("other", "learn", Some("1/s")), refused("tool other → learn, at most 1/s"));
}

#[test]
fn a_replaced_directory_is_not_granted() {
    let workspace = workspace();
    let kitbag = workspace.kitbag();
    let grants = granted(&workspace, "docs", "/workspace", Access::ReadOnly);
    // After reading the configuration and before the call.
    std::fs::rename(workspace.root(), workspace.outside().join("moved")).unwrap();
    workspace.file("docs/a.txt", "another document");
    let read = json!({ "do": "read", "path": "/workspace/a.txt" });
    let got = workspace.redact(&called(&kitbag, probe(read).with_grants(grants)));
    assert!(got.contains("`<workspace>` was replaced"), "{got}");
}

#[test]
fn a_call_can_only_lower_the_limits() {
    let workspace = Workspace::with_probe("");
    let kitbag = workspace.kitbag();
    let call = |arguments, limits| called(&kitbag, probe(arguments).with_limits(limits));
    let echo = || json!({ "do": "echo", "text": "x".repeat(3000) });
    let small = LimitFlags { output: Some(ByteSize::bytes(2048)), ..LimitFlags::default() };
    let got = call(echo(), small);
    assert!(got.ends_with("[cut by kitbag: this answer had 3000 bytes]"), "{got}");
    // Fuel is counted for this call, although the tool has no fuel limit.
    let fuel = LimitFlags { fuel: Some(1_000), ..LimitFlags::default() };
    assert_eq!(call(echo(), fuel), "failed: limit: fuel (1000): request less, or a part of it");
    assert_eq!(call(echo(), LimitFlags::default()), "x".repeat(3000));

    let higher = "; request less, or raise the limit of the tool";
    let check = |limits: LimitFlags, named: &str| {
        let expected = format!("failed: a call of `probe` cannot have {named}{higher}");
        assert_eq!(call(echo(), limits), expected);
    };
    let limits = LimitFlags::default();
    let memory = LimitFlags { memory: Some(ByteSize::mib(65)), ..limits };
    check(memory, "`memory = 65 MiB`: the tool has `64 MiB` (default)");
    let time = LimitFlags { time: Some(std::time::Duration::from_secs(31)), ..limits };
    check(time, "`time = 31s`: the tool has `30s` (default)");
    let output = LimitFlags { output: Some(ByteSize::mib(2)), ..limits };
    check(output, "`output = 2 MiB`: the tool has `1 MiB` (default)");
    let written = LimitFlags { written: Some(ByteSize::mib(2048)), ..limits };
    check(written, "`written = 2 GiB`: the tool has `1 GiB` (default)");
    let tool_calls = LimitFlags { tool_calls: Some(21), ..limits };
    check(tool_calls, "`tool_calls = 21`: the tool has `20` (default)");
    let compile = LimitFlags { compile: Some(std::time::Duration::from_secs(61)), ..limits };
    check(compile, "`compile = 1m 1s`: the tool has `1m` (default)");
    workspace.config(&crate::support::probe("[tools.probe.limits]\nfuel = 100\n"));
    let metered = workspace.kitbag();
    let fuel = probe(echo()).with_limits(LimitFlags { fuel: Some(101), ..limits });
    let got = called(&metered, fuel);
    let named = "`fuel = 101`: the tool has `100` (.kitbag/config.toml:";
    assert!(got.contains(named), "{got}");
}
