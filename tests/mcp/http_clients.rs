//! Guests that use the HTTP clients of their ecosystem, against servers on loopback.

use std::sync::LazyLock;

use kitbag_contract::{Action, Limits, Outcome};
use kitbag_host::{
    Call, ClientOptions, Component, ComponentSource, Host, HostOptions, Roots, RunContext,
};
use kitbag_policy::Grants;
use kitbag_policy::http::{HttpGrant, Methods};
use kitbag_test_servers::{Authority, Behaviour, Server};
use serde_json::{Value, json};

use crate::support::guest;

/// A certificate authority that the host of these tests trusts.
static AUTHORITY: LazyLock<Authority> = LazyLock::new(Authority::new);

/// The host, and the guest that was built with `wstd`.
static REQUEST: LazyLock<(Host, Component)> = LazyLock::new(|| {
    let mut roots = Roots::default();
    roots.add_pem(AUTHORITY.pem().as_bytes()).unwrap();
    let connections = ClientOptions { roots, ..ClientOptions::default() };
    let host = Host::new(HostOptions { connections, ..HostOptions::default() });
    let source = ComponentSource::File(guest("request").into());
    let component = host.component(&source, &Limits::default(), &RunContext::default()).unwrap();
    (host, component)
});

/// Grants that allow reading URLs of this pattern.
fn read(pattern: &str) -> Vec<HttpGrant> {
    vec![HttpGrant::new(pattern.parse().unwrap())]
}

/// The answer of the guest with these grants.
fn request(grants: Vec<HttpGrant>, arguments: Value) -> Value {
    request_within(Limits::default(), grants, arguments)
}

fn request_within(limits: Limits, grants: Vec<HttpGrant>, arguments: Value) -> Value {
    let call = Call {
        name: "request".into(),
        function: None,
        action: Action::Run,
        arguments: arguments.to_string(),
        answers: "{}".into(),
        grants: Grants { http: grants.into(), ..Grants::default() }.into(),
        guard: Default::default(),
        secrets: Default::default(),
        limits,
        storage: None,
        tools: None,
    };
    let (host, component) = &*REQUEST;
    match host.call_blocking(component, &call, &RunContext::default()).result {
        Ok(Outcome::Success(text)) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_in_rust_reaches_a_server_over_tls_through_a_grant() {
    for (tls, version) in [(AUTHORITY.local(), "HTTP/2.0"), (AUTHORITY.local().http1(), "HTTP/1.1")]
    {
        let server = Server::start_tls(Behaviour::Echo, &tls);
        let url = server.url_as("localhost");
        let grant = format!("{url}/docs/**");
        let got = request(
            read(&grant),
            json!({ "url": format!("{url}/docs/a?b=c"), "headers": ["x-one: 1"] }),
        );
        assert_eq!(got["status"], 200, "{got}");
        let echo: Value = serde_json::from_str(got["body"].as_str().unwrap()).unwrap();
        assert_eq!((&echo["version"], &echo["method"]), (&json!(version), &json!("GET")));
        assert!(echo["target"].as_str().unwrap().ends_with("/docs/a?b=c"), "{echo}");
        assert!(echo["headers"].as_array().unwrap().contains(&json!(["x-one", "1"])), "{echo}");

        // Beside the pattern, and with another method.
        for arguments in [
            json!({ "url": format!("{url}/private") }),
            json!({ "url": format!("{url}/docs/a"), "method": "POST", "body": "x" }),
        ] {
            let got = request(read(&grant), arguments);
            assert_eq!(got, json!({ "error": "ErrorCode::HttpRequestDenied" }));
        }
        assert_eq!(server.seen().requests.len(), 1);
    }
}

#[test]
fn a_request_body_is_sent_and_returned() {
    let server = Server::start(Behaviour::Echo);
    let url = server.url();
    let mut grant = HttpGrant::new(format!("{url}/**").parse().unwrap());
    grant.methods = Methods::new(["POST"]).unwrap();
    let arguments =
        json!({ "url": url, "method": "POST", "body": "0123456789", "repeat": 20_000, "times": 2 });
    let got = request(vec![grant], arguments);
    let answers = got.as_array().unwrap();
    assert_eq!(answers.len(), 2);
    for answer in answers {
        let echo: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(echo["body"].as_str().unwrap().len(), 200_000);
    }
    // The second request reused the connection of the first.
    assert_eq!((server.seen().connections, server.seen().requests.len()), (1, 2));
}

#[test]
fn a_redirect_is_followed_if_a_grant_allows_it() {
    let server = Server::start(Behaviour::Redirects);
    let follow =
        HttpGrant { follow: 3, ..HttpGrant::new(format!("{}/**", server.url()).parse().unwrap()) };
    // The client opens the body of a request and leaves it empty.
    let got = request(vec![follow], json!({ "url": format!("{}/302/2", server.url()) }));
    assert_eq!(got["status"], 200, "{got}");
    assert_eq!(server.seen().requests.len(), 3);
}

#[test]
fn without_a_grant_no_server_is_reached() {
    let server = Server::start_tls(Behaviour::Echo, &AUTHORITY.local());
    let got = request(Vec::new(), json!({ "url": server.url_as("localhost") }));
    assert_eq!(got, json!({ "error": "ErrorCode::HttpRequestDenied" }));
    assert!(server.seen().is_nothing());
}

#[test]
fn a_server_with_an_unknown_authority_gets_no_request() {
    let server = Server::start_tls(Behaviour::Echo, &Authority::new().local());
    let url = server.url_as("localhost");
    let got = request(read(&format!("{url}/**")), json!({ "url": url }));
    assert_eq!(got, json!({ "error": "ErrorCode::TlsCertificateError" }));
    assert_eq!(server.seen().requests, []);
}

/// A request with options holds as many handles as one without: none after the answer.
#[test]
fn a_thousand_requests_with_options_fit_into_a_call() {
    let server = Server::start(Behaviour::Echo);
    let limits = Limits { requests: 1000, ..Limits::default() };
    let arguments = json!({ "url": server.url(), "times": 1000, "timeout_ms": 60_000 });
    let got = request_within(limits, read(&format!("{}/**", server.url())), arguments);
    let answers = got.as_array().unwrap();
    assert_eq!(answers.len(), 1000);
    assert!(answers.iter().all(|answer| answer["status"] == 200), "{:?}", answers.last());
}
