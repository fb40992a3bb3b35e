//! Secrets in requests, through the binary: only servers receive them.

use base64::Engine;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use base64::engine::general_purpose::STANDARD;
use kitbag_test_servers::{Answer, Authority, Behaviour, Server};
use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::{Run, Workspace, guest};

const VALUE: &str = "c0rrect/horse+battery=";

/// The value in all encodings that must not be visible.
fn spellings() -> Vec<String> {
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent = "c0rrect%2Fhorse%2Bbattery%3D".to_owned();
    // Base64 at each offset, without the characters that depend on adjacent bytes.
    let base64 = (0..3).map(|offset| {
        let text = STANDARD.encode(format!("{}{VALUE}", "x".repeat(offset)));
        let (start, end) = ((8 * offset).div_ceil(6), 8 * (offset + VALUE.len()) / 6);
        text[start..end].to_owned()
    });
    [VALUE.to_owned(), hex, percent].into_iter().chain(base64).collect()
}

/// Panics if a value is visible.
fn check_hidden(shown: &str) {
    for spelling in spellings() {
        assert!(!shown.contains(&spelling), "`{spelling}` is in\n{shown}");
    }
}

/// A workspace with the tool `request`, and the secret `github` for these destinations.
fn workspace(to: &[String], grants: &str) -> Workspace {
    let workspace = Workspace::new();
    let wasm = guest("request");
    workspace.own_config(&format!(
        "[secrets.github]\nvariable = \"OF_THE_HOST\"\nto = {to:?}\n\
         [tools.request]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.request.grants]\n{grants}\n"
    ));
    workspace
}

fn all(server: &Server) -> String {
    format!("{}/**", server.url())
}

#[test]
fn a_script_does_not_hide_a_blocked_leak_from_the_person() {
    let server = Server::start(Behaviour::Echo);
    let workspace = Workspace::with_toolsets(&["python", "fetch"]);
    workspace.own_config(&format!(
        "[tools.fetch.grants]\nhttp = [{{ url = {:?}, addresses = [\"127.0.0.0/8\"] }}]\n",
        all(&server)
    ));
    let token = format!("ghp_{}", "1a2B3c4D5e6F7g8H9i0JkLmNoPqRsTuVwXyZ");
    let url = format!("{}/?q={token}", server.url());
    let code = format!("try:\n    fetch(url='{url}')\nexcept Exception:\n    pass\n'done'");
    let arguments = json!({ "code": code }).to_string();
    let run = workspace.run(&["run", "python", "--args", &arguments]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.stdout.starts_with("\"done\"\n"), "{}", run.shown());
    let warning = "warning: a request was blocked: ";
    assert_eq!(run.stderr.matches(warning).count(), 1, "{}", run.shown());
    assert!(!run.stderr.contains(&token), "{}", run.shown());
}

const ENV: [(&str, &str); 1] = [("OF_THE_HOST", VALUE)];

fn run(workspace: &Workspace, arguments: &Value) -> Run {
    let arguments = arguments.to_string();
    workspace.run_with(&["--json", "run", "request", "--verbose", "--args", &arguments], "", &ENV)
}

/// The value of this header in the only request to the server.
fn seen(server: &Server, header: &str) -> Option<String> {
    let seen = server.seen();
    let [request] = &seen.requests[..] else { panic!("{seen:?}") };
    request.header(header)
}

/// A server that answers with the request, in every encoding.
fn echoing() -> Server {
    Server::start(Behaviour::respond(|request| {
        let sent = request.header("authorization").unwrap_or_default();
        let value = sent.trim_start_matches("Bearer ").to_owned();
        let spelled = if value == VALUE { spellings().join(" ") } else { String::new() };
        Answer::ok("text/plain", format!("echo {value} {spelled} end")).header("x-echo", &value)
    }))
}

#[test]
fn a_secret_is_only_sent_to_its_destinations() {
    let (server, other) = (echoing(), echoing());
    let grants = format!("http = {:?}\nsecrets = {{ github = {{}} }}", [all(&server), all(&other)]);
    let workspace = workspace(&[all(&server)], &grants);
    let done = run(&workspace, &json!({ "url": server.url() }));
    assert_eq!(done.code, 0, "{}", done.shown());
    assert_eq!(seen(&server, "authorization").unwrap(), format!("Bearer {VALUE}"));
    assert!(done.stdout.contains("echo *****"), "{}", done.shown());
    check_hidden(&done.shown());
    let done = run(&workspace, &json!({ "url": other.url() }));
    assert_eq!(done.code, 0, "{}", done.shown());
    assert_eq!(seen(&other, "authorization"), None);
}

#[test]
fn a_secret_is_sent_over_tls_with_the_users_authority() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.local());
    let to = format!("{}/**", server.url_as("localhost"));
    let grants = format!("http = [{to:?}]\nsecrets = {{ github = {{}} }}");
    let arguments = json!({ "url": server.url_as("localhost") });
    let workspace = workspace(&[to], &grants);
    let done = run(&workspace, &arguments);
    assert!(done.stdout.contains("TlsCertificateError"), "{}", done.shown());
    assert!(server.seen().requests.is_empty());

    let roots = workspace.home().join("authority.pem");
    fs::write(&roots, authority.pem()).unwrap();
    workspace.add_to_own_config(&format!("[network]\nroots = [{roots:?}]\n"));
    let done = run(&workspace, &arguments);
    assert_eq!(done.code, 0, "{}", done.shown());
    assert_eq!(seen(&server, "authorization").unwrap(), format!("Bearer {VALUE}"));
    check_hidden(&done.shown());
}

#[test]
fn a_placeholder_becomes_the_secret_at_its_destinations() {
    let (server, other) = (echoing(), echoing());
    let variable = "env = [{ name = \"TOKEN\", secret = \"github\" }]";
    let grants = format!("http = {:?}\n{variable}", [all(&server), all(&other)]);
    let workspace = workspace(&[all(&server)], &grants);
    let done = run(&workspace, &json!({ "url": server.url(), "token": "TOKEN" }));
    assert_eq!(done.code, 0, "{}", done.shown());
    assert_eq!(seen(&server, "authorization").unwrap(), format!("Bearer {VALUE}"));
    check_hidden(&done.shown());

    // Requests to other destinations are refused and logged.
    let done = run(&workspace, &json!({ "url": other.url(), "token": "TOKEN" }));
    assert!(done.stdout.contains("HttpRequestDenied"), "{}", done.shown());
    let refused = "the header `authorization` contains the placeholder of a secret that may not be sent there";
    assert!(done.stderr.contains(refused), "{}", done.shown());
    assert!(other.seen().requests.is_empty());
}

#[test]
fn a_variable_of_a_secret_holds_its_placeholder() {
    let workspace = Workspace::new();
    let wasm = guest("settings");
    workspace.own_config(&format!(
        "[secrets.github]\nvariable = \"OF_THE_HOST\"\n\
         [tools.settings]\nsource = \"local\"\nwasm = {wasm:?}\n\
         grants.env = [{{ name = \"TOKEN\", secret = \"github\" }}]\n"
    ));
    let shown = workspace.run_with(&["run", "settings"], "", &ENV).success();
    assert!(shown.starts_with("env TOKEN=kitbag_placeholder_"), "{shown}");
    check_hidden(&shown);
}

#[test]
fn apparent_keys_are_not_sent_and_masked_in_answers() {
    let key = format!("glpat-{}", "notARealKey1234567890");
    let server = Server::start(Behaviour::Answer(Answer::ok("text/plain", key.clone())));
    let workspace = workspace(&[], &format!("http = {:?}", [all(&server)]));
    let sent = json!({ "url": server.url(), "headers": [format!("private-token: {key}")] });
    let done = run(&workspace, &sent);
    assert!(done.stdout.contains("HttpRequestDenied"), "{}", done.shown());
    assert!(done.stderr.contains("what looks like a token of GitLab"), "{}", done.shown());
    assert!(server.seen().requests.is_empty());

    let done = run(&workspace, &json!({ "url": server.url() }));
    assert_eq!(done.code, 0, "{}", done.shown());
    assert!(!done.shown().contains(&key), "{}", done.shown());
    assert!(done.stdout.contains("[kitbag-mask:gitlab]"), "{}", done.shown());
    let line = "the answer contains what looks like a token of GitLab";
    assert!(done.stderr.contains(line), "{}", done.shown());
}

#[test]
fn the_message_of_a_refused_request_omits_the_value() {
    let server = echoing();
    let workspace = Workspace::with_toolsets(&["fetch"]);
    let place = all(&server);
    workspace.own_config(&format!(
        "[secrets.github]\nvariable = \"OF_THE_HOST\"\nto = [{place:?}]\n\
         [tools.fetch.grants]\nsecrets = {{ github = {{}} }}\n\
         http = [{{ url = {place:?}, encoded_slash = true }}]\n"
    ));
    for spelling in spellings().into_iter().filter(|it| !it.contains(['/', '+', '='])) {
        let url = format!("url={}/{spelling}/x", server.url());
        let run = workspace.run_with(&["run", "fetch", "--verbose", &url], "", &ENV);
        let shown = run.shown();
        assert!(shown.contains("the path contains the value of a secret"), "{shown}");
        check_hidden(&shown);
    }
    assert!(server.seen().requests.is_empty());
}

#[test]
fn an_unreadable_secret_is_reported_without_a_request() {
    let server = echoing();
    let grants = format!("http = {:?}\nsecrets = {{ github = {{}} }}", [all(&server)]);
    let workspace = workspace(&[all(&server)], &grants);
    let arguments = json!({ "url": server.url() }).to_string();
    let done = workspace.run(&["run", "request", "--verbose", "--args", &arguments]);
    assert!(done.stderr.contains("the variable `OF_THE_HOST` is not set"), "{}", done.shown());
    assert!(server.seen().requests.is_empty());
}

#[test]
fn an_mcp_server_hides_secrets_in_answers_log_and_metrics() {
    let authority = Authority::new();
    // Over HTTP/2, whose crate logs many details.
    let server = Server::start_tls(Behaviour::Echo, &authority.local());
    let workspace = Workspace::new();
    let wasm = guest("request");
    let roots = workspace.home().join("authority.pem");
    fs::write(&roots, authority.pem()).unwrap();
    // The output of a password manager.
    workspace.own_config(&format!(
        "[network]\nroots = [{roots:?}]\n\
         [secrets.github]\ncommand = [\"/bin/echo\", \"{VALUE}\"]\nto = [\"{to}\"]\n\
         as = {{ header = \"x-key\" }}\n\
         [tools.request]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.request.grants]\nhttp = [\"{to}\"]\nsecrets = {{ github = {{}} }}\n",
        to = format!("{}/**", server.url_as("localhost"))
    ));
    let mut host = HttpServer::start(&workspace, &["--no-token", "--log", "trace"]);
    let url = server.url_as("localhost");
    let arguments = json!({ "name": "request", "arguments": { "url": url } });
    let answer = host.message("", "tools/call", arguments);
    assert!(answer.body.contains("******"), "{answer:?}");
    check_hidden(&answer.body);
    let metrics = host.send("GET", "/metrics", "", "");
    assert!(metrics.body.contains("request"), "{metrics:?}");
    check_hidden(&metrics.body);
    host.child.kill().unwrap();
    let log = host.rest();
    assert!(log.contains("request"), "{log}");
    check_hidden(&log);
    assert_eq!(seen(&server, "x-key").unwrap(), VALUE);
}

/// The writable parts of a process's memory: each with its content, and true if a large
/// inaccessible part follows, as after the memory of a guest.
#[cfg(target_os = "linux")]
fn memory(process: u32) -> Vec<(bool, Vec<u8>)> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let file = File::open(format!("/proc/{process}/mem")).unwrap();
    let part = |line: &str| {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        (start, end, rest[..4].to_owned())
    };
    let parts: Vec<_> = maps.lines().map(part).collect();
    let mut memory = Vec::new();
    for (index, (start, end, rights)) in parts.iter().enumerate() {
        let guard = parts.get(index + 1).is_some_and(|(next, until, rights)| {
            next == end && rights.starts_with("---") && until - next >= 1 << 30
        });
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        // A part may have been unmapped meanwhile.
        if rights.starts_with("rw") && file.read_exact_at(&mut bytes, *start).is_ok() {
            memory.push((guard, bytes));
        }
    }
    memory
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_guest_never_contains_the_value() {
    let server = Server::start(Behaviour::Pieces);
    let variable = "env = [{ name = \"TOKEN\", secret = \"github\" }]";
    let grants = format!("http = {:?}\n{variable}", [all(&server)]);
    let workspace = workspace(&[all(&server)], &grants);
    let arguments = json!({ "url": server.url(), "token": "TOKEN" }).to_string();
    let mut command = workspace.command();
    command.args(["run", "request", "--args", &arguments]).envs(ENV);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for_requests(1);
    let marker = "this-much-has-come";
    server.send(format!("{} {marker}", spellings().join(" ")));
    let has = |bytes: &[u8], text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
    // Until the guest has read it.
    let guest = loop {
        let guest: Vec<_> = memory(process.id())
            .into_iter()
            .filter(|(is_guest, bytes)| *is_guest && has(bytes, marker))
            .collect();
        if !guest.is_empty() {
            break guest;
        }
        assert!(process.try_wait().unwrap().is_none(), "it ended");
        thread::sleep(Duration::from_millis(20));
    };
    for (_, bytes) in &guest {
        assert!(has(bytes, "kitbag_placeholder_"));
        for spelling in spellings() {
            assert!(!has(bytes, &spelling), "the guest has `{spelling}`");
        }
    }
    // The host has the value, which proves that the search can find it.
    assert!(memory(process.id()).iter().any(|(_, bytes)| has(bytes, VALUE)));
    server.end();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(seen(&server, "authorization").unwrap(), format!("Bearer {VALUE}"));
}
