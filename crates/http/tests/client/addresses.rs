//! The checked address is the one that is connected to.

use kitbag_http::{Client, RequestError};
use kitbag_policy::http::{HttpGrant, RefusalKind};
use kitbag_test_servers::{Behaviour, Dns, DnsAnswer, DnsRecord, Server};

use crate::caller::{Caller, client, grant};

fn opening(url: &str, blocks: &[&str]) -> HttpGrant {
    let addresses = blocks.iter().map(|block| block.parse().unwrap()).collect();
    HttpGrant { addresses, ..grant(url) }
}

#[test]
fn names_do_not_open_local_or_private_addresses() {
    let server = Server::start(Behaviour::Echo);
    for address in [
        "127.0.0.1",
        "127.255.255.254",
        "::1",
        "0.0.0.0",
        "::",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "fd00:ec2::254",
        "fe80::1",
        "fc00::1",
        "224.0.0.1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "168.63.129.16",
        "198.18.0.1",
        "255.255.255.255",
    ] {
        let dns = Dns::of(&[("name.test", &[&[address]])]);
        let client = client(Some(&dns), None);
        let url = server.url_as("name.test");
        let caller = Caller::new(&client, vec![grant(&url)]);
        let (kind, reason) = caller.refused(&url);
        assert_eq!(kind, RefusalKind::Address, "{address}: {reason}");
    }
    assert!(server.seen().is_nothing());
}

#[test]
fn one_forbidden_address_refuses_the_name() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("name.test", &[&["127.0.0.1", "10.0.0.1"]])]);
    let url = server.url_as("name.test");
    let client = client(Some(&dns), None);
    let caller = Caller::new(&client, vec![opening(&url, &["127.0.0.1/32"])]);
    let (kind, reason) = caller.refused(&url);
    assert_eq!(kind, RefusalKind::Address);
    assert!(reason.contains("10.0.0.1") && !reason.contains("127.0.0.1"), "{reason}");
    assert!(server.seen().is_nothing());
    let caller = Caller::new(&client, vec![opening(&url, &["127.0.0.1/32", "10.0.0.1/32"])]);
    assert_eq!(caller.get(&url).unwrap().status, 200);
}

#[test]
fn rebound_names_use_the_checked_address() {
    // The address in the first answer is allowed, but does not accept connections at this port.
    let victim = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("evil.test", &[&["127.0.0.2"], &["127.0.0.1"]])]);
    let url = victim.url_as("evil.test");
    let caller = Caller::new(&client(Some(&dns), None), vec![opening(&url, &["127.0.0.2/32"])]);
    let error = caller.get(&url).unwrap_err();
    assert!(matches!(error, RequestError::Connect { is_refused: true, .. }), "{error}");
    let queries = |kind: &str| dns.seen().iter().filter(|question| question.kind == kind).count();
    assert_eq!(queries("A"), 1);
    // The second time, the name resolves to this machine.
    assert_eq!(caller.refused(&url).0, RefusalKind::Address);
    assert!(victim.seen().is_nothing());
}

#[test]
fn https_records_are_ignored() {
    let hidden = Server::start(Behaviour::Echo);
    let port = hidden.port();
    let dns = Dns::start(move |question, _| match &*question.kind {
        "HTTPS" => DnsAnswer::Records(vec![DnsRecord::Https {
            priority: 1,
            target: "hidden.test".to_owned(),
            alpn: vec!["h2".to_owned()],
            port: Some(port),
            hints: vec!["127.0.0.1".parse().unwrap()],
        }]),
        "A" => DnsAnswer::Records(vec![DnsRecord::Address("127.0.0.2".parse().unwrap())]),
        _ => DnsAnswer::Records(vec![]),
    });
    let url = hidden.url_as("name.test");
    let caller = Caller::new(&client(Some(&dns), None), vec![opening(&url, &["127.0.0.2/32"])]);
    let error = caller.get(&url).unwrap_err();
    assert!(matches!(error, RequestError::Connect { .. }), "{error}");
    assert!(dns.seen().iter().all(|question| question.kind != "HTTPS"));
    assert!(hidden.seen().is_nothing());
}

#[test]
fn aliases_are_checked_by_their_addresses() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::start(|question, _| match &*question.kind {
        "A" => DnsAnswer::Records(vec![
            DnsRecord::Alias("localhost".to_owned()),
            DnsRecord::Address("127.0.0.1".parse().unwrap()),
        ]),
        _ => DnsAnswer::Records(vec![]),
    });
    let url = server.url_as("name.test");
    let caller = Caller::new(&client(Some(&dns), None), vec![grant(&url)]);
    assert_eq!(caller.refused(&url).0, RefusalKind::Address);
    assert!(server.seen().is_nothing());
}

#[test]
fn localhost_is_resolved_locally() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("localhost", &[&["203.0.113.7"]])]);
    let url = server.url_as("localhost");
    let caller = Caller::new(&client(Some(&dns), None), vec![grant(&url)]);
    assert_eq!(caller.get(&url).unwrap().status, 200);
    assert_eq!(dns.seen(), []);
    let seen = server.seen();
    assert_eq!(seen.requests[0].header("host").unwrap(), format!("localhost:{}", server.port()));
}

#[test]
fn names_without_addresses_are_named_in_the_error() {
    let dns = Dns::of(&[]);
    let caller = Caller::new(&client(Some(&dns), None), vec![grant("https://nowhere.test")]);
    let error = caller.get("https://nowhere.test").unwrap_err();
    let RequestError::Name { host, .. } = error else { panic!("{error}") };
    assert_eq!(host, "nowhere.test");
    // The name is complete: no search domain is appended.
    assert!(dns.seen().iter().all(|question| question.name == "nowhere.test"));
}

#[test]
fn further_addresses_are_tried_after_a_failure() {
    let server = Server::start_at(Behaviour::Echo, "127.0.0.3".parse().unwrap(), None);
    let dns = Dns::of(&[("name.test", &[&["127.0.0.2", "127.0.0.3"]])]);
    let url = server.url_as("name.test");
    let caller = Caller::new(&client(Some(&dns), None), vec![opening(&url, &["127.0.0.0/8"])]);
    assert_eq!(caller.get(&url).unwrap().status, 200);
}

#[test]
fn refused_connections_are_reported() {
    let server = Server::start(Behaviour::Echo);
    let url = server.url();
    drop(server);
    let caller = Caller::new(&Client::default(), vec![grant(&url)]);
    let error = caller.get(&url).unwrap_err();
    assert!(matches!(error, RequestError::Connect { is_refused: true, .. }), "{error}");
}
