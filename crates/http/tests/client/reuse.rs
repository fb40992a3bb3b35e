//! Connections are reused only within one tool and its grants.

use kitbag_http::Client;
use kitbag_policy::http::{HttpGrant, HttpGrants, RefusalKind};
use kitbag_test_servers::{Answer, Authority, Behaviour, Dns, Server};

use crate::caller::{Caller, client, grant};

fn get(caller: &Caller, url: &str) {
    assert_eq!(caller.get(url).unwrap().status, 200);
}

#[test]
fn connections_are_reused_by_the_same_owner() {
    let authority = Authority::new();
    let servers = [
        Server::start(Behaviour::Echo),
        Server::start_tls(Behaviour::Echo, &authority.local().http1()),
        Server::start_tls(Behaviour::Echo, &authority.local()),
    ];
    for server in servers {
        let client = client(None, Some(&authority));
        let grants = HttpGrants::from(vec![grant(&server.url())]);
        for _ in 0..3 {
            get(&Caller::of("one", &client, grants.clone()), &server.url());
        }
        assert_eq!(server.seen().connections, 1);
        get(&Caller::of("two", &client, grants.clone()), &server.url());
        assert_eq!(server.seen().connections, 2);
        drop(client);
        server.wait_until_closed();
    }
}

#[test]
fn tls_sessions_do_not_link_tools() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.local().http1());
    let client = client(None, Some(&authority));
    for owner in ["one", "two", "three"] {
        let grants = HttpGrants::from(vec![grant(&server.url())]);
        get(&Caller::of(owner, &client, grants), &server.url());
    }
    let seen = server.seen();
    assert_eq!((seen.connections, seen.resumed), (3, 0));
}

#[test]
fn kept_connections_respect_other_grants() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("name.test", &[&["127.0.0.1"]])]);
    let client = client(Some(&dns), None);
    let url = server.url_as("name.test");
    let addresses = vec!["127.0.0.1/32".parse().unwrap()];
    let open = HttpGrant { addresses, ..grant(&format!("{url}/open/**")) };
    let closed = grant(&format!("{url}/closed/**"));
    let caller = Caller::new(&client, vec![open, closed]);
    get(&caller, &format!("{url}/open/a"));
    assert_eq!(caller.refused(&format!("{url}/closed/a")).0, RefusalKind::Address);
    assert_eq!(server.seen().requests.len(), 1);
}

#[test]
fn closed_connections_are_not_reused() {
    let answer = Answer::ok("text/plain", "once").header("connection", "close");
    let server = Server::start(Behaviour::Answer(answer));
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    for _ in 0..3 {
        assert_eq!(&*caller.get(&server.url()).unwrap().body, b"once");
    }
    assert_eq!(server.seen().connections, 3);
}

#[test]
fn unread_responses_close_their_connection() {
    let server = Server::start(Behaviour::Endless);
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    let response = caller.wait(caller.send("GET", &server.url()).start()).unwrap();
    assert_eq!(server.seen().open, 1);
    drop(response);
    server.wait_until_closed();
}
