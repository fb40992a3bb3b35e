//! Secrets are added to requests for their destinations, and masked in responses.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::sync::Arc;

use http::StatusCode;
use kitbag_http::{Account, CallLimits, Client, RequestError, Requests};
use kitbag_policy::http::{HttpGrant, HttpGrants, RefusalKind};
use kitbag_policy::{Placement, SecretGrant, SecretName, SecretPlace, SecretSource};
use kitbag_secrets::{
    COMMAND_TIME, CallEnd, CallSecrets, ReadError, ReadSecret, SecretValue, Secrets, Sources,
};
use kitbag_test_servers::{Answer, Behaviour, Coding, Server};

use crate::caller::{Caller, any_method};

const VALUE: &str = "correct-horse-battery";

struct One;

impl ReadSecret for One {
    fn read(&self, _: &SecretName, _: &CallEnd) -> Result<SecretValue, ReadError> {
        Ok(SecretValue::new(VALUE.into())?)
    }
}

fn secrets(to: &[&str], added: Option<Placement>) -> Arc<CallSecrets> {
    secrets_of(One, to, added)
}

fn secrets_of(
    reader: impl ReadSecret + 'static,
    to: &[&str],
    added: Option<Placement>,
) -> Arc<CallSecrets> {
    let name = SecretName::new("token").unwrap();
    let to = to.iter().map(|to| SecretPlace::new(to, false).unwrap()).collect();
    let (in_query, in_body, variables) = (true, true, Vec::new());
    let grant = SecretGrant { name, to, within: None, added, variables, in_query, in_body };
    Arc::new(CallSecrets::new([grant], Arc::new(Secrets::new(reader, Vec::new()))).unwrap())
}

fn caller(grants: Vec<HttpGrant>, secrets: &Arc<CallSecrets>) -> Caller {
    let grants = HttpGrants::from(grants);
    let (client, limits) = (Client::default(), CallLimits::default());
    Caller::with(Requests::new(
        &client,
        "tool",
        Account::of_tool("tool"),
        grants,
        limits,
        Some(Arc::clone(secrets)),
    ))
}

fn placeholder(secrets: &CallSecrets) -> String {
    secrets.placeholder(&SecretName::new("token").unwrap()).unwrap().as_str().to_owned()
}

#[test]
fn secrets_are_added_only_at_their_destinations() {
    let (bound, other) = (Server::start(Behaviour::Echo), Server::start(Behaviour::Echo));
    let secrets = secrets(&[&bound.url()], Some(Placement::Bearer));
    let caller = caller(vec![any_method(&bound.url()), any_method(&other.url())], &secrets);
    let got = caller.get(&bound.url()).unwrap();
    let seen = bound.seen().requests[0].header("authorization");
    assert_eq!(seen.unwrap(), format!("Bearer {VALUE}"));
    // The server echoes the request.
    let text = String::from_utf8(got.body.to_vec()).unwrap();
    assert!(!text.contains(VALUE), "{text}");
    assert!(text.contains(&"*".repeat(VALUE.len())), "{text}");
    caller.get(&other.url()).unwrap();
    assert_eq!(other.seen().requests[0].header("authorization"), None);
}

#[test]
fn placeholders_are_replaced_or_refused_by_destination() {
    let (bound, other) = (Server::start(Behaviour::Echo), Server::start(Behaviour::Echo));
    let secrets = secrets(&[&bound.url()], None);
    let caller = caller(vec![any_method(&bound.url()), any_method(&other.url())], &secrets);
    let placeholder = placeholder(&secrets);
    let body = format!("before {placeholder} after");
    let url = format!("{}/a?key={placeholder}", bound.url());
    let sent = caller.send("POST", &url).header("x-key", &placeholder).body(body.clone());
    assert_eq!(sent.whole().unwrap().status, 200);
    let seen = bound.seen().requests.pop().unwrap();
    assert_eq!(seen.target, format!("/a?key={VALUE}"));
    assert_eq!(seen.header("x-key").unwrap(), VALUE);
    assert_eq!(seen.body, format!("before {VALUE} after").as_bytes());
    assert_eq!(seen.header("content-length").unwrap(), seen.body.len().to_string());
    let refused = caller.send("GET", &other.url()).header("x-key", &placeholder).refused();
    assert_eq!(refused.0, RefusalKind::Secret);
    caller.send("POST", &other.url()).body(body).refused();
    caller.refused(&format!("{}/{placeholder}", other.url()));
    assert!(other.seen().is_nothing());
}

#[test]
fn values_sent_by_other_calls_are_masked() {
    let server = Server::start(Behaviour::Answer(Answer::new(200, VALUE)));
    let secrets = secrets(&[&format!("{}/api/**", server.url())], Some(Placement::Bearer));
    let caller = caller(vec![any_method(&server.url())], &secrets);
    // The value is not sent there, and was not read before.
    let got = caller.get(&format!("{}/debug", server.url())).unwrap();
    assert_eq!(server.seen().requests[0].header("authorization"), None);
    assert_eq!(got.body, "*".repeat(VALUE.len()));
}

#[test]
fn range_requests_cannot_fetch_a_value() {
    let (start, end) = VALUE.split_at(7);
    let answers = |half: &str| Server::start(Behaviour::Answer(Answer::new(206, half)));
    for (server, range) in [(answers(start), "bytes=0-6"), (answers(end), "bytes=7-")] {
        let to = server.url_as("localhost");
        let secrets = secrets(&[&format!("{to}/api/**")], Some(Placement::Bearer));
        let caller = caller(vec![any_method(&to), any_method(&server.url())], &secrets);
        for url in [format!("{to}/api/me"), format!("{to}/debug")] {
            let refused = caller.send("GET", &url).header("Range", range).refused();
            assert_eq!(refused.0, RefusalKind::Header);
            let text = "the header `range` requests a part of a response";
            assert!(refused.1.contains(text), "{}", refused.1);
        }
        assert!(server.seen().is_nothing());
        // A server that received no secret may send parts.
        let elsewhere = caller.send("GET", &server.url()).header("Range", range).whole().unwrap();
        assert_eq!(elsewhere.status, StatusCode::PARTIAL_CONTENT);
    }
}

#[test]
fn redirects_do_not_forward_secrets() {
    let (server, other) = (Server::start(Behaviour::Redirects), Server::start(Behaviour::Echo));
    let secrets = secrets(&[&server.url()], Some(Placement::Bearer));
    let first = HttpGrant { follow: 5, ..any_method(&server.url()) };
    let caller = caller(vec![first, any_method(&other.url())], &secrets);
    let url = format!("{}/to/302?{}/a", server.url(), other.url());
    assert_eq!(caller.get(&url).unwrap().status, 200);
    assert!(server.seen().requests[0].header("authorization").is_some());
    assert_eq!(other.seen().requests[0].header("authorization"), None);
    // A field of the tool, even with a placeholder, is sent only to its origin.
    let placeholder = placeholder(&secrets);
    caller.send("GET", &url).header("x-key", &placeholder).whole().unwrap();
    assert_eq!(other.seen().requests[1].header("x-key"), None);
}

#[test]
fn responses_without_secrets_are_not_decoded() {
    let (server, elsewhere) = (Server::start(Behaviour::Echo), "https://a.example/**");
    let secrets = secrets(&[elsewhere], Some(Placement::Bearer));
    let caller = caller(vec![any_method(&server.url())], &secrets);
    caller.send("GET", &server.url()).header("accept-encoding", "br").whole().unwrap();
    assert_eq!(server.seen().requests[0].header("accept-encoding").unwrap(), "br");
}

#[test]
fn redirects_with_a_value_are_refused() {
    let to = |start: &'static str| {
        Server::start(Behaviour::respond(move |request| {
            let sent = request.header("authorization").unwrap();
            let value = sent.trim_start_matches("Bearer ");
            Answer::redirect(302, &format!("{start}{value}"))
        }))
    };
    for start in ["http://127.0.0.1:9/", "http://not.granted/", "http://x:", "/%ZZ", "http://"] {
        let server = to(start);
        let secrets = secrets(&[&server.url()], Some(Placement::Bearer));
        let first = HttpGrant { follow: 5, ..any_method(&server.url()) };
        let caller = caller(vec![first], &secrets);
        let (kind, reason) = caller.send("GET", &server.url()).refused();
        assert_eq!(kind, RefusalKind::Secret, "{start}");
        assert!(!reason.to_lowercase().contains(VALUE), "{reason}");
        assert!(reason.contains("a URL that contains the value of a secret"), "{reason}");
    }
}

#[test]
fn a_value_is_masked_in_header_fields_and_across_pieces() {
    let (start, end) = VALUE.split_at(7);
    let pieces = Server::start(Behaviour::Pieces);
    let secrets = secrets(&[&pieces.url()], Some(Placement::Bearer));
    let caller_of = |server: &Server| caller(vec![any_method(&server.url())], &secrets);
    let caller = caller_of(&pieces);
    let response = caller.send("GET", &pieces.url()).start();
    pieces.send(format!("a {start}"));
    let response = caller.wait(response).unwrap();
    pieces.send(format!("{end} b"));
    pieces.end();
    let body = caller.wait(response.into_body().whole()).unwrap();
    assert_eq!(&*body, format!("a {} b", "*".repeat(VALUE.len())).as_bytes());
    let answer = Answer::new(200, "").header("x-echo", &format!("is {VALUE}"));
    let server = Server::start(Behaviour::Answer(answer));
    let got = caller_of(&server).get(&server.url()).unwrap();
    assert_eq!(got.headers["x-echo"], format!("is {}", "*".repeat(VALUE.len())));
}

#[test]
fn decompression_stops_at_the_limit() {
    for coding in [Coding::Gzip, Coding::Deflate] {
        let server = Server::start(Behaviour::Bomb(coding, 64));
        let secrets = secrets(&[&server.url()], Some(Placement::Bearer));
        let caller = caller(vec![any_method(&server.url())], &secrets);
        assert_eq!(caller.refused(&server.url()).0, RefusalKind::Size, "{coding:?}");
        let accepted = server.seen().requests[0].header("accept-encoding");
        assert_eq!(accepted.unwrap(), "gzip, deflate");
    }
    let server = Server::start(Behaviour::Bomb(Coding::Brotli, 64));
    let secrets = secrets(&[&server.url()], Some(Placement::Bearer));
    let caller = caller(vec![any_method(&server.url())], &secrets);
    let error = caller.get(&server.url()).unwrap_err();
    assert!(matches!(&error, RequestError::Encoding(coding) if coding == "br"), "{error}");
}

#[test]
fn transfer_encodings_are_refused() {
    let check = |fields: &str, expected: Result<&str, &str>| {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
        let server = Server::start(Behaviour::Raw(format!("{head}2\r\nok\r\n0\r\n\r\n").into()));
        let secrets = secrets(&[&server.url()], Some(Placement::Bearer));
        let got = caller(vec![any_method(&server.url())], &secrets).get(&server.url());
        match (&got, expected) {
            (Ok(got), Ok(body)) => assert_eq!(&*got.body, body.as_bytes()),
            (Err(RequestError::Encoding(coding)), Err(expected)) => assert_eq!(coding, expected),
            _ => panic!("{fields}: {got:?}"),
        }
    };
    check("Transfer-Encoding: chunked", Ok("ok"));
    check("Transfer-Encoding: Chunked", Ok("ok"));
    check("Transfer-Encoding: gzip, chunked", Err("gzip, chunked"));
    check("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", Err("gzip"));
    check("Transfer-Encoding: x-gzip\r\nConnection: close", Err("x-gzip"));
}

#[test]
fn compressed_responses_are_decoded_for_the_tool() {
    let server = Server::start(Behaviour::Bomb(Coding::Gzip, 1));
    let secrets = secrets(&[&server.url()], Some(Placement::Bearer));
    let got = caller(vec![any_method(&server.url())], &secrets).get(&server.url()).unwrap();
    assert_eq!((got.status, got.body.len()), (StatusCode::OK, 1 << 20));
    assert!(got.headers.get("content-encoding").is_none());
    assert!(got.headers.get("content-length").is_none());
}

#[test]
fn ending_a_call_stops_programs_that_read_values() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Remaining processes report themselves after a while; reading ends when no process has the
    // FIFO open.
    let script = format!(
        "exec 3>{fifo:?}; (echo started >&3; sleep 30; echo child left >&3) & \
         sleep 30; echo parent left >&3"
    );
    let command = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
    let sources = [(SecretName::new("token").unwrap(), SecretSource::Command(command))];
    let sources = Sources { sources: sources.into(), store: None, command_time: COMMAND_TIME };
    let server = Server::start(Behaviour::Echo);
    let secrets = secrets_of(sources, &[&server.url()], Some(Placement::Bearer));
    let caller = caller(vec![any_method(&server.url())], &secrets);
    let response = caller.send("GET", &server.url()).start();
    let mut reader = BufReader::new(File::open(&fifo).unwrap());
    let mut text = String::new();
    reader.read_line(&mut text).unwrap();
    assert_eq!(text, "started\n");
    drop((response, caller));
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "started\n");
    assert!(server.seen().is_nothing());
}
