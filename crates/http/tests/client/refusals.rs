//! Requests that no grant allows reach no server and set nothing up.

use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Empty};
use kitbag_http::{Client, RequestError, RequestTimes};
use kitbag_policy::http::{HttpGrant, Methods, RefusalKind};
use kitbag_test_servers::{Behaviour, Dns, Server};

use crate::caller::{Caller, any_method, client, grant};

#[test]
fn setup_starts_with_the_first_allowed_request() {
    let server = Server::start(Behaviour::Echo);
    let client = Client::default();
    let none = Caller::new(&client, vec![]);
    assert_eq!(none.refused(&server.url()).0, RefusalKind::Host);
    let other = Caller::new(&client, vec![grant("https://example.com/**")]);
    assert_eq!(other.refused(&server.url()).0, RefusalKind::Host);
    assert!(!client.is_started());
    assert!(server.seen().is_nothing());
    let caller = Caller::new(&client, vec![grant(&server.url())]);
    assert_eq!(caller.get(&server.url()).unwrap().status, 200);
    assert!(client.is_started());
}

#[test]
fn refusals_name_the_missing_grant() {
    let server = Server::start(Behaviour::Echo);
    let client = Client::default();
    let caller = Caller::new(&client, vec![]);
    let url = format!("{}/a", server.url());
    caller.refused(&url);
    let error = caller.send("POST", &url).whole().unwrap_err();
    let RequestError::Refused(refusal) = error else { panic!("{error}") };
    let missing = refusal.missing.unwrap();
    assert_eq!(missing.key, "http");
    assert_eq!(missing.entry, format!("{{ url = \"{url}\", methods = [\"POST\"] }}"));
    // The missing grant allows the request.
    let granted = HttpGrant { methods: Methods::new(["POST"]).unwrap(), ..grant(&url) };
    let caller = Caller::new(&client, vec![granted]);
    assert_eq!(caller.send("POST", &url).whole().unwrap().status, 200);
}

#[test]
fn scheme_host_port_path_and_method_are_each_compared() {
    let server = Server::start(Behaviour::Echo);
    let (port, client) = (server.port(), Client::default());
    let caller = Caller::new(&client, vec![grant(&format!("http://127.0.0.1:{port}/a/**"))]);
    let check = |method: &str, url: &str, kind: RefusalKind| {
        let url = url.replace("PORT", &port.to_string());
        assert_eq!(caller.send(method, &url).refused().0, kind, "{method} {url}");
    };
    check("GET", "https://127.0.0.1:PORT/a/b", RefusalKind::Scheme);
    check("GET", "http://127.0.0.1/a/b", RefusalKind::Host);
    check("GET", "http://localhost:PORT/a/b", RefusalKind::Host);
    check("GET", "http://127.0.0.1:PORT/b", RefusalKind::Path);
    check("GET", "http://127.0.0.1:PORT/ab", RefusalKind::Path);
    check("GET", "http://127.0.0.1:PORT/a/../b", RefusalKind::Path);
    check("GET", "http://127.0.0.1:PORT/a/%2e%2e/b", RefusalKind::Path);
    check("GET", "http://127.0.0.1:PORT/a%2Fb", RefusalKind::Path);
    check("GET", "http://user@127.0.0.1:PORT/a/b", RefusalKind::Host);
    check("GET", "ftp://127.0.0.1:PORT/a/b", RefusalKind::Scheme);
    check("POST", "http://127.0.0.1:PORT/a/b", RefusalKind::Method);
    check("CONNECT", "http://127.0.0.1:PORT/a/b", RefusalKind::Method);
    check("get", "http://127.0.0.1:PORT/a/b", RefusalKind::Method);
    assert!(server.seen().is_nothing());
    let url = format!("http://127.0.0.1:{port}/a/b?c=%2Fd");
    assert_eq!(caller.get(&url).unwrap().status, 200);
    assert_eq!(server.seen().requests[0].target, "/a/b?c=%2Fd");
}

#[test]
fn only_canonical_addresses_are_accepted() {
    let server = Server::start(Behaviour::Echo);
    let caller = Caller::new(
        &Client::default(),
        vec![
            grant(&format!("http://127.0.0.1:{}", server.port())),
            grant(&format!("http://localhost:{}", server.port())),
        ],
    );
    let spellings = [
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "localhost.",
        "ⓛocalhost",
    ];
    for host in spellings {
        let (kind, _) = caller.refused(&format!("http://{host}:{}/", server.port()));
        assert_eq!(kind, RefusalKind::Host, "{host}");
    }
    let (kind, _) = caller.refused(&format!("http://[::ffff:127.0.0.1]:{}/", server.port()));
    assert!(matches!(kind, RefusalKind::Host | RefusalKind::Address));
    assert!(server.seen().is_nothing());
}

#[test]
fn connection_and_host_fields_are_refused() {
    let server = Server::start(Behaviour::Echo);
    let caller = Caller::new(&Client::default(), vec![any_method(&server.url())]);
    let fields = [
        ("connection", "upgrade"),
        ("connection", "close"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("proxy-authorization", "Basic eDp5"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
        ("http2-settings", "AAMAAABk"),
        ("host", "example.org"),
        ("expect", "100-continue"),
        ("x-http-method-override", "DELETE"),
    ];
    for (name, value) in fields {
        let refused = caller.send("GET", &server.url()).header(name, value).refused();
        assert_eq!(refused.0, RefusalKind::Header, "{name}");
    }
    assert!(server.seen().is_nothing());
}

#[test]
fn line_breaks_in_header_values_are_refused() {
    for value in ["a\r\nx: y", "a\nb", "a\rb", "a\0b"] {
        assert!(HeaderValue::from_str(value).is_err(), "{value:?}");
    }
}

#[test]
fn too_many_header_fields_are_refused() {
    let server = Server::start(Behaviour::Echo);
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    let send = |count: usize, length: usize| {
        let mut headers = HeaderMap::new();
        for at in 0..count {
            let name = HeaderName::try_from(format!("x-{at}")).unwrap();
            headers.append(name, HeaderValue::try_from("a".repeat(length)).unwrap());
        }
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let mut request = Request::new(body);
        *request.headers_mut() = headers;
        caller.wait(caller.requests.send(&server.url(), request, RequestTimes::default()))
    };
    for (count, length) in [(101, 1), (20_000, 1), (50, 1_000)] {
        let error = send(count, length).unwrap_err();
        let RequestError::Refused(refusal) = error else { panic!("{error}") };
        assert_eq!(refusal.kind, RefusalKind::Header);
    }
    assert!(server.seen().is_nothing());
    assert_eq!(send(100, 100).unwrap().status(), 200);
}

#[test]
fn deny_overrides_every_grant() {
    let server = Server::start(Behaviour::Echo);
    let (client, port) = (Client::default(), server.port());
    let both = [grant(&server.url()), grant(&server.url_as("localhost"))];
    for deny in [server.url(), format!("http://127.0.0.1:{port}/a/**"), "http://127.0.0.1".into()] {
        let caller = Caller::denied(&client, both.to_vec(), &[&deny]);
        assert_eq!(caller.refused(&format!("{}/a/b", server.url())).0, RefusalKind::Host, "{deny}");
    }
    // A denied address applies to names that resolve to it.
    let caller = Caller::denied(&client, both.to_vec(), &["http://127.0.0.1", "http://[::1]"]);
    let refused = caller.refused(&format!("{}/a/b", server.url_as("localhost")));
    assert_eq!(refused.0, RefusalKind::Address);
    assert!(server.seen().is_nothing());
}

#[test]
fn ungranted_hosts_are_not_resolved() {
    let dns = Dns::of(&[("good.test", &[&["127.0.0.1"]]), ("other.test", &[&["127.0.0.1"]])]);
    let server = Server::start(Behaviour::Echo);
    let url = server.url_as("good.test");
    let addresses = vec!["127.0.0.1/32".parse().unwrap()];
    let granted = HttpGrant { addresses, ..grant(&url) };
    let caller = Caller::new(&client(Some(&dns), None), vec![granted]);
    assert_eq!(caller.refused(&server.url_as("other.test")).0, RefusalKind::Host);
    assert_eq!(
        caller.refused(&format!("http://secret-value.good.test:{}", server.port())).0,
        RefusalKind::Host
    );
    assert_eq!(dns.seen(), []);
    assert_eq!(caller.get(&url).unwrap().status, 200);
    assert!(dns.seen().iter().all(|question| question.name == "good.test"));
}
