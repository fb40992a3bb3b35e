//! Signing in to remote MCP servers with the program, and calling their tools.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use kitbag_test_servers::OAuthServer;
use serde_json::{Value, json};

use crate::support::mcp::{Client, texts};
use crate::support::{Run, Workspace};

/// A workspace with the server in its configuration. There is no sign-in yet.
fn workspace(server: &OAuthServer) -> Workspace {
    let workspace = Workspace::new().with_time();
    workspace.config(&format!("[servers.docs]\nurl = \"{}\"\n", server.url()));
    workspace
}

/// Runs `kitbag login`, and follows the printed URL as a browser does.
fn login(workspace: &Workspace, arguments: &[&str]) -> Run {
    let mut child = workspace
        .command()
        .args(["login", "docs", "--no-browser"])
        .args(arguments)
        .env("APP", "of-my-app-0123456789")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap() == 0 {
            break;
        }
        stderr.push_str(&line);
        if line.starts_with("http://") {
            // The URL of a lying provider may lead nowhere.
            let url = line.trim();
            if url.contains("/authorize?") {
                OAuthServer::get(&OAuthServer::approve(url));
            }
        }
    }
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    Run { code: child.wait().unwrap().code().unwrap_or(-1), stdout, stderr }
}

/// A workspace where a person has signed in and recorded the tools.
fn signed_in(server: &OAuthServer) -> Workspace {
    let workspace = workspace(server);
    let login = login(&workspace, &[]);
    assert_eq!(login.code, 0, "{}", login.stderr);
    workspace.run(&["update", "docs", "--yes"]).success();
    workspace
}

/// Every token of the provider, valid or not.
fn tokens(server: &OAuthServer) -> Vec<String> {
    server.state().issued.clone()
}

/// Every file below the home and the workspace, as text.
fn all_files(workspace: &Workspace) -> String {
    let (mut left, mut text) = (vec![workspace.outside().to_owned()], String::new());
    while let Some(path) = left.pop() {
        match path.is_dir() {
            true => left.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path())),
            false => text.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap_or_default())),
        }
    }
    text
}

#[test]
fn a_person_signs_in_calls_and_signs_out() {
    let server = OAuthServer::start();
    let workspace = workspace(&server);
    let refused = workspace.run(&["update", "docs", "--yes"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("`kitbag login docs`"), "{}", refused.stderr);

    let run = login(&workspace, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let issuer = format!("{}/as", server.origin());
    let expected = format!(
        "Signed in to the server docs at {issuer} with the scopes read.\n`kitbag logout docs` ends \
         it.\n"
    );
    assert_eq!(run.stdout, expected);
    workspace.run(&["update", "docs", "--yes"]).success();

    // The server repeats the token, which is masked.
    let answer = workspace.run(&["run", "docs_echo"]).success();
    assert!(answer.starts_with("called with *"), "{answer}");
    let described = workspace.run(&["describe", "docs"]).success();
    assert!(described.contains(&format!("signed in at {issuer}")), "{described}");
    let audit = workspace.run(&["audit", "--json"]);
    let files = all_files(&workspace);
    for token in tokens(&server) {
        for text in [&answer, &audit.stdout, &files, &run.stdout, &run.stderr] {
            assert!(!text.contains(&token), "{token} in {text}");
        }
    }

    let out = workspace.run(&["logout", "docs"]).success();
    assert_eq!(out, "Revoked and deleted the sign-in to the server docs.\n");
    assert!(server.state().access.is_empty() && server.state().refresh.is_empty());
    let refused = workspace.run(&["run", "docs_echo"]);
    assert!(refused.stderr.contains("`kitbag login docs`"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("trying again"), "{}", refused.stderr);
    let out = workspace.run(&["logout", "docs"]).success();
    assert_eq!(out, "There was no sign-in to the server docs.\n");
}

#[test]
fn servers_are_added_after_a_sign_in() {
    let (server, workspace) = (OAuthServer::start(), Workspace::new().with_time());
    let url = server.url();
    let refused = workspace.run(&["add", "docs", &url, "--yes"]);
    let hint = format!("sign in with `kitbag login docs {url}`, and add it again");
    assert!(refused.code != 0 && refused.stderr.contains(&hint), "{}", refused.stderr);
    assert_eq!(login(&workspace, &[&url]).code, 0);
    workspace.run(&["add", "docs", &url, "--yes"]).success();
    assert!(workspace.run(&["run", "docs_echo"]).success().starts_with("called with *"));
}

#[test]
fn a_registered_client_signs_in_with_its_secret() {
    let server = OAuthServer::start();
    let workspace = workspace(&server);
    let options = ["--client-id", "my-app", "--client-secret", "app"];
    let secret = |place: &str| {
        format!("[secrets.app]\nvariable = \"APP\"\nto = [\"{}{place}\"]\n", server.origin())
    };
    // The secret may be sent to its destinations only.
    workspace.own_config(&secret("/other"));
    let refused = login(&workspace, &options);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("may not be sent to the token endpoint"), "{}", refused.stderr);
    workspace.own_config(&secret("/token"));
    let run = login(&workspace, &options);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("client_id=my-app"), "{}", run.stderr);
    let state = server.state();
    assert!(!state.seen.iter().any(|it| it == "register"), "{:?}", state.seen);
    // `Basic my-app:of-my-app-0123456789`, to the token endpoint.
    let credentials = "Basic bXktYXBwOm9mLW15LWFwcC0wMTIzNDU2Nzg5";
    assert_eq!(state.sent.iter().filter(|sent| sent.starts_with(credentials)).count(), 1);
    drop(state);
    // The next sign-in uses the same client.
    server.state().sent.clear();
    assert_eq!(login(&workspace, &[]).code, 0);
    assert!(server.state().sent.iter().any(|sent| sent.starts_with(credentials)));
}

#[test]
fn tokens_that_cannot_be_revoked_are_deleted() {
    let server = OAuthServer::start();
    let workspace = workspace(&server);
    assert_eq!(login(&workspace, &[]).code, 0);
    server.state().keeps_tokens = true;
    let out = workspace.run(&["logout", "docs"]);
    let deleted =
        "Deleted the sign-in to the server docs. Its tokens are valid until they expire.\n";
    assert_eq!((out.code, &*out.stdout), (0, deleted));
    let warning = "warning: the tokens are deleted, but not revoked: ";
    assert!(out.stderr.starts_with(warning), "{}", out.stderr);
    assert!(server.state().seen.iter().any(|it| it.starts_with("revoke ")));
    let out = workspace.run(&["logout", "docs"]).success();
    assert_eq!(out, "There was no sign-in to the server docs.\n");
}

#[test]
fn lists_and_checks_name_an_expired_sign_in() {
    let server = OAuthServer::start();
    server.state().has_no_refresh = true;
    let workspace = signed_in(&server);
    assert!(!workspace.run(&["list"]).success().contains("kitbag login"));
    assert!(!workspace.run(&["check"]).stderr.contains("kitbag login"));
    server.state().expires_in = 0;
    assert_eq!(login(&workspace, &[]).code, 0);
    let expected = "the sign-in expired; sign in with `kitbag login docs`";
    let listed = workspace.run(&["list"]).success();
    assert!(listed.contains(expected), "{listed}");
    let checked = workspace.run(&["check"]).stderr;
    assert!(checked.contains(&format!("the server `docs`: {expected}")), "{checked}");
}

#[test]
fn a_device_code_signs_in_without_a_browser() {
    let server = OAuthServer::start();
    let workspace = workspace(&server);
    let run = workspace.run(&["login", "docs", "--device"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let page = format!("open {}/enter and enter the code WDJB-MJHT", server.origin());
    assert!(run.stderr.contains(&page), "{}", run.stderr);
    workspace.run(&["update", "docs", "--yes"]).success();
}

#[test]
fn servers_of_untrusted_workspaces_get_no_sign_in() {
    let server = OAuthServer::start();
    let workspace = workspace(&server).untrusted();
    let run = login(&workspace, &[]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(server.state().seen.is_empty());
}

#[test]
fn sign_in_as_json_has_no_tokens() {
    let server = OAuthServer::start();
    let workspace = workspace(&server);
    let run = login(&workspace, &["--json", "--scope", "read", "--scope", "admin"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(value["server"], "docs");
    assert_eq!(value["refreshable"], true);
    for token in tokens(&server) {
        assert!(!run.stdout.contains(&token), "{}", run.stdout);
    }
    let asked = run.stderr.lines().any(|line| line.contains("scope=read+admin"));
    assert!(asked, "{}", run.stderr);
}

#[test]
fn processes_refresh_an_expired_token_once() {
    let server = OAuthServer::start();
    let workspace = signed_in(&server);
    server.state().access.clear();
    let before = refreshes(&server);
    let runs: Vec<Run> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..4).map(|_| scope.spawn(|| workspace.run(&["run", "docs_echo"]))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for run in runs {
        assert!(run.stdout.starts_with("called with *"), "{}", run.stderr);
    }
    assert_eq!(refreshes(&server) - before, 1);
}

fn refreshes(server: &OAuthServer) -> usize {
    server.state().seen.iter().filter(|it| *it == "token refresh_token").count()
}

#[test]
fn models_get_a_command_and_no_url_to_sign_in() {
    let server = OAuthServer::start();
    let workspace = signed_in(&server);
    let mut client = Client::with_handshake(&workspace, json!({}));
    let answer = client.call("docs_admin", json!({})).to_string();
    assert!(answer.contains("`kitbag login docs --scope read --scope admin`"), "{answer}");
    server.state().access.clear();
    server.state().refresh.clear();
    let answer = client.call("docs_echo", json!({}));
    let text = texts(&answer).join("\n");
    assert!(text.contains("`kitbag login docs`") && !text.contains("http"), "{text}");
}

#[test]
fn lying_providers_get_no_token_and_leave_no_sign_in() {
    let cases = [
        ("issuer", json!("https://honest.example")),
        ("resource", json!("https://other.example/mcp")),
        ("token_endpoint", json!("http://192.0.2.1/token")),
        ("authorization_endpoint", json!("http://192.0.2.1/authorize")),
        ("scopes_supported", json!(vec!["x".repeat(1000); 100])),
    ];
    let check = |server: &OAuthServer, lie: &str| {
        let workspace = workspace(server);
        let run = login(&workspace, &[]);
        assert_ne!(run.code, 0, "{lie}: {}", run.stdout);
        assert_eq!(server.state().access.len(), 0, "{lie}");
        let out = workspace.run(&["logout", "docs"]).success();
        assert_eq!(out, "There was no sign-in to the server docs.\n", "{lie}");
    };
    for (key, lie) in cases {
        let server = OAuthServer::start();
        server.state().lies.insert(key, lie);
        check(&server, key);
    }
    let server = OAuthServer::start();
    server.state().iss = Some("https://honest.example".to_owned());
    check(&server, "iss");
}
