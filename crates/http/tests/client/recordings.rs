//! Recorded responses in place of servers.

use kitbag_http::{Client, ClientOptions, RecordedResponse, Recordings};
use kitbag_policy::http::HttpRequest;
use kitbag_test_servers::{Behaviour, Server};

use crate::caller::{Caller, any_method, grant};

fn recorded(method: &str, url: &str, status: u16, body: &str) -> RecordedResponse {
    RecordedResponse {
        request: HttpRequest::new(method, url).unwrap(),
        status,
        headers: vec![("content-type".into(), "text/plain".into())],
        body: body.into(),
    }
}

fn client(recordings: &Recordings) -> Client {
    let recordings = Some(recordings.clone());
    Client::new(ClientOptions { recordings, ..ClientOptions::default() })
}

#[test]
fn recorded_responses_replace_the_server() {
    let server = Server::start(Behaviour::Echo);
    let url = format!("{}/a?b=c", server.url());
    let https = "https://api.example/x";
    let recordings = Recordings::new(vec![
        recorded("GET", &url, 201, "recorded"),
        recorded("POST", https, 404, "none"),
    ]);
    let all = format!("{}/**", server.url());
    let caller = Caller::new(&client(&recordings), vec![grant(&all), any_method(https)]);
    for _ in 0..2 {
        let got = caller.get(&url).unwrap();
        assert_eq!((got.status.as_u16(), &*got.body), (201, &b"recorded"[..]));
    }
    // Larger than the pipe.
    let body = vec![b'a'; 1 << 20];
    let got = caller.send("POST", https).body(body).whole().unwrap();
    assert_eq!((got.status.as_u16(), &*got.body), (404, &b"none"[..]));
    assert_eq!(got.headers["content-type"], "text/plain");
    assert_eq!(server.seen().connections, 0);
}

#[test]
fn requests_without_a_recorded_response_fail() {
    let server = Server::start(Behaviour::Echo);
    let recordings = Recordings::new(vec![recorded("GET", &server.url(), 200, "")]);
    let all = format!("{}/**", server.url());
    let caller = Caller::new(&client(&recordings), vec![any_method(&all)]);
    let (other, post) = (format!("{}/other", server.url()), format!("{}/", server.url()));
    caller.get(&other).unwrap_err();
    caller.send("POST", &post).whole().unwrap_err();
    let expected = [format!("GET {other}"), format!("POST {post}")];
    assert_eq!(recordings.unanswered(), expected);
    assert_eq!(server.seen().connections, 0);
}

#[test]
fn recordings_grant_nothing() {
    let url = "https://api.example/x";
    let recordings = Recordings::new(vec![recorded("GET", url, 200, "")]);
    let caller = Caller::new(&client(&recordings), vec![grant("https://other.example/")]);
    caller.refused(url);
    assert!(recordings.unanswered().is_empty());
}
