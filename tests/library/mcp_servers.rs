//! MCP servers that a program adds without configuration.

use kitbag::policy::server::{ServerName, ServerProcess};
use kitbag::{BuildError, Kitbag, Outcome};
use serde_json::json;

use crate::support::{Workspace, block_on};

const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"server/discover"'*) answer '"error":{"code":-32601,"message":"unknown"}' ;;
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1.0"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"query","description":"Query.","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"called"}]}' ;;
  esac
done
"#;

fn process(workspace: &Workspace, script: &str) -> ServerProcess {
    ServerProcess::new("/bin/sh", workspace.root()).arguments(["-c", script])
}

fn name() -> ServerName {
    ServerName::new("db").unwrap()
}

#[test]
fn builders_add_the_tools_of_servers() {
    let workspace = Workspace::new();
    let builder = Kitbag::builder().workspace(workspace.root()).no_cache();
    let kitbag = builder.server(name(), process(&workspace, SERVER)).build().unwrap();
    let outcome = block_on(kitbag.call("db_query", json!({}))).unwrap();
    assert_eq!(outcome, Outcome::Success("called".into()));
    // The same later, for a running program.
    let mut kitbag = Kitbag::builder().workspace(workspace.root()).no_cache().build().unwrap();
    let names = block_on(kitbag.add_server(name(), process(&workspace, SERVER))).unwrap();
    assert_eq!(names.iter().map(ToString::to_string).collect::<Vec<_>>(), ["db_query"]);
}

#[test]
fn a_server_that_does_not_start_is_an_error() {
    let workspace = Workspace::new();
    let builder = Kitbag::builder().workspace(workspace.root()).no_cache();
    let Err(error) = builder.server(name(), process(&workspace, "exit 3")).build() else {
        panic!("built");
    };
    assert!(matches!(error, BuildError::Server(_)), "{error}");
    assert!(error.to_string().contains("exit status 3"), "{error}");
}
