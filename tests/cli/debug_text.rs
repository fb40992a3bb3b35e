//! Errors of the program are prose, without Rust's debug output.

use kitbag_test_servers::{Authority, Behaviour, Server};
use serde_json::json;

use crate::support::Workspace;

/// Text that appears only in Rust's debug output.
const DEBUG: [&str; 14] = [
    "Some(",
    "None,",
    "Err(",
    "Ok(",
    "Os {",
    "kind:",
    "code:",
    "Error(",
    "Custom {",
    "ErrorKind",
    "ErrorCode::",
    "UnknownIssuer",
    "Query {",
    "NotFound",
];

fn check(shown: &str) {
    for debug in DEBUG {
        assert!(!shown.contains(debug), "`{debug}` in {shown}");
    }
}

#[test]
fn errors_of_commands_hold_no_debug_text() {
    let workspace = Workspace::new();
    workspace.file("text.wasm", "not a component");
    workspace.file("empty.wasm", "");
    workspace.file("module.wasm", b"\0asm\x01\0\0\0");
    workspace.file("broken.wasm", b"\0asm\x0d\0\x01\0\xff\xff");
    std::os::unix::fs::symlink("loop.wasm", workspace.path("loop.wasm")).unwrap();
    let commands: [&[&str]; 24] = [
        &["inspect", "missing.wasm"],
        &["inspect", "."],
        &["inspect", "text.wasm"],
        &["inspect", "empty.wasm"],
        &["inspect", "module.wasm"],
        &["inspect", "broken.wasm"],
        &["inspect", "loop.wasm"],
        &["inspect", "/dev/null"],
        &["add", "missing.wasm"],
        &["add", "."],
        &["add", "text.wasm"],
        &["add", "broken.wasm"],
        &["run", "nothing"],
        &["run", "read_file"],
        &["run", "read_file", "path=missing"],
        &["run", "read_file", "path=."],
        &["run", "read_file", "path=text.wasm/x"],
        &["run", "read_file", "--json", "{"],
        &["run", "calculate", "expression=1/"],
        &["run", "validate_data", "path=missing", "schema={}"],
        &["--workspace", "/nowhere", "list"],
        &["describe", "nothing"],
        &["why", "read_file", "GET", "not a url"],
        &["trust", "/nowhere"],
    ];
    for command in commands {
        let run = workspace.run(command);
        assert_ne!(run.code, 0, "{command:?}: {}", run.shown());
        check(&format!("{}{}", run.stdout, run.stderr));
    }
}

#[test]
fn errors_of_configurations_hold_no_debug_text() {
    let texts = [
        "[",
        "a = ",
        "a = 1",
        "limits = 1",
        "[limits]\nmemory = -1",
        "[limits]\ntime = \"1 parsec\"",
        "[network]\nproxy = \"socks5://a\"",
        "[network]\nproxy = 1",
        "[network]\nproxy = \"environment\"\nresolve = \"dns\"",
        "[network]\nroots = [\"/nowhere\", \"/\", \"/dev/null\"]",
        "[tools.a]\nwasm = \"https://a.test/a.wasm\"",
        "[tools.a]\nwasm = \"/nowhere.wasm\"",
        "[tools.a.grants]\nhttp = [\"x\", \"http://a b\", 1]",
        "[audit]\nsync = \"often\"",
        "[secrets.a]\ncommand = 1",
    ];
    for text in texts {
        let workspace = Workspace::new();
        workspace.own_config(text);
        let run = workspace.run(&["check"]);
        assert_ne!(run.code, 0, "{text}: {}", run.shown());
        check(&format!("{}{}", run.stdout, run.stderr));
    }
}

#[test]
fn errors_of_requests_hold_no_debug_text() {
    let (stranger, authority) = (Authority::new(), Authority::new());
    let servers = [
        Server::start_tls(Behaviour::Echo, &stranger.local()),
        Server::start_tls(Behaviour::Echo, &authority.expired(&["127.0.0.1"])),
        Server::start(Behaviour::Raw(b"nothing\r\n\r\n".to_vec())),
        Server::start(Behaviour::Raw(Vec::new())),
        Server::start(Behaviour::too_short()),
        Server::start(Behaviour::two_lengths()),
        Server::start(Behaviour::broken_chunk()),
        Server::start(Behaviour::Fields(2_000)),
    ];
    let closed = Server::start(Behaviour::Echo).url();
    let plain = servers[2].url().replace("http://", "https://");
    let urls: Vec<_> = servers.iter().map(Server::url).chain([closed, plain]).collect();
    let workspace = Workspace::with_toolsets(&["fetch"]);
    let grants: Vec<_> = urls.iter().map(|url| format!("{url}/**")).collect();
    workspace.own_config(&format!("[tools.fetch.grants]\nhttp = {grants:?}\n"));
    for url in &urls {
        let run = workspace.tool("fetch", &json!({ "url": url }), &[]);
        let body = run.stdout.contains("\"headers\"");
        assert!(!body, "{}", run.shown());
        check(&format!("{}{}", run.stdout, run.stderr));
    }
}
