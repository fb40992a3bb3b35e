//! Sign-in to a remote server with the program, against a provider on loopback.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use kitbag_test_servers::OAuthServer;

use crate::support::Workspace;

/// Runs `kitbag login` and follows the printed URL. Returns standard output.
fn login(workspace: &Workspace, url: &str) -> String {
    let mut command = workspace.command();
    command.args(["login", "docs", url, "--no-browser"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).find(|line| line.contains("/authorize?"));
    let redirect = OAuthServer::approve(found.expect("the URL is printed").trim());
    assert!(OAuthServer::get(&redirect).0.contains("200"));
    let mut output = String::new();
    process.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(process.wait().unwrap().success(), "{output}");
    output
}

#[test]
fn a_server_with_sign_in_works_until_logout() {
    let (server, workspace) = (OAuthServer::start(), Workspace::new());
    let url = server.url();
    let refused = workspace.run(&["add", "docs", &url, "--yes"]);
    let hint = format!("sign in with `kitbag login docs {url}`, and add it again");
    assert!(refused.code != 0 && refused.stderr.contains(&hint), "{}", refused.stderr);
    let output = login(&workspace, &url);
    let expected = format!(
        "Signed in to the server docs at {}/as with the scopes read.\n`kitbag logout docs` ends it.\n",
        server.origin()
    );
    assert_eq!(output, expected);
    workspace.run(&["add", "docs", &url, "--yes"]).success();
    let called = workspace.run(&["run", "docs_echo"]).success();
    assert!(called.starts_with("called with ***"), "{called}");
    // Each process refreshes a token that the server no longer accepts.
    server.state().access.clear();
    assert!(workspace.run(&["run", "docs_echo"]).success().starts_with("called with ***"));
    let described = workspace.run(&["describe", "docs"]).success();
    assert!(described.contains("signed in at"), "{described}");
    let output = workspace.run(&["logout", "docs"]).success();
    assert_eq!(output, "Revoked and deleted the sign-in to the server docs.\n");
    assert!(server.state().access.is_empty() && server.state().refresh.is_empty());
    let refused = workspace.run(&["run", "docs_echo"]);
    assert!(
        refused.stderr.contains("a person has to run `kitbag login docs`"),
        "{}",
        refused.stderr
    );
    // No output and no file in plain text has a token.
    let log = workspace.run(&["audit", "--json"]);
    for text in [&log.stdout, &called, &described, &refused.stderr] {
        assert!(!text.contains("access-0123") && !text.contains("refresh-0123"), "{text}");
    }
}
