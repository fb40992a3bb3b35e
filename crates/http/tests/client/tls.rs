//! TLS: whom a connection trusts, and which version of HTTP is spoken.

use kitbag_http::{Client, ClientOptions, Proxy, RequestError};
use kitbag_policy::http::HttpGrant;
use kitbag_test_servers::{Authority, Behaviour, Dns, Server};

use crate::caller::{Caller, client, grant, trusting};

fn certificate_error(error: RequestError) -> String {
    match error {
        RequestError::Tls { is_certificate: true, reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_of_an_own_authority_is_reached_by_both_versions() {
    let authority = Authority::new();
    for (tls, version) in [(authority.local(), "HTTP/2.0"), (authority.local().http1(), "HTTP/1.1")]
    {
        let server = Server::start_tls(Behaviour::Echo, &tls);
        for url in [server.url_as("localhost"), server.url()] {
            let caller = Caller::new(&client(None, Some(&authority)), vec![grant(&url)]);
            let url = format!("{url}/a?b=c");
            assert_eq!(caller.get(&url).unwrap().status, 200);
            let seen = server.seen().requests.pop().unwrap();
            assert_eq!((&*seen.version, seen.path()), (version, "/a"));
        }
    }
}

#[test]
fn an_unknown_authority_another_name_and_an_old_certificate_are_refused() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.local());
    let url = server.url_as("localhost");
    let stranger = Caller::new(&Client::default(), vec![grant(&url)]);
    certificate_error(stranger.get(&url).unwrap_err());
    for tls in [authority.certificate(&["example.com"]), authority.expired(&["localhost"])] {
        let server = Server::start_tls(Behaviour::Echo, &tls);
        let url = server.url_as("localhost");
        let caller = Caller::new(&client(None, Some(&authority)), vec![grant(&url)]);
        certificate_error(caller.get(&url).unwrap_err());
        assert!(server.seen().requests.is_empty());
    }
    assert!(server.seen().requests.is_empty());
}

#[test]
fn a_proxy_is_given_the_address_that_was_checked() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.certificate(&["name.test"]));
    let dns = Dns::of(&[("name.test", &[&["10.9.8.7"]])]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    let proxy: Proxy = format!("http://user:p%40ss@{}", through.address()).parse().unwrap();
    let client = Client::new(ClientOptions {
        roots: trusting(&authority),
        nameservers: kitbag_http::Nameservers::These(vec![dns.address()]),
        proxy: Some(proxy),
    });
    let url = server.url_as("name.test");
    let closed = Caller::new(&client, vec![grant(&url)]);
    closed.refused(&url);
    assert!(through.seen().is_nothing());
    let addresses = vec!["10.0.0.0/8".parse().unwrap()];
    let caller = Caller::new(&client, vec![HttpGrant { addresses, ..grant(&url) }]);
    assert_eq!(caller.get(&url).unwrap().status, 200);
    let asked = &through.seen().requests[0];
    let target = format!("10.9.8.7:{}", server.address().port());
    assert_eq!((&*asked.method, &*asked.target), ("CONNECT", &*target));
    assert_eq!(asked.header("proxy-authorization").unwrap(), "Basic dXNlcjpwQHNz");
    // Only the proxy gets its password.
    let seen = server.seen();
    assert!(seen.requests[0].headers.iter().all(|(name, _)| !name.starts_with("proxy")));
}

#[test]
fn what_is_on_this_machine_or_named_goes_without_the_proxy() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("name.test", &[&["127.0.0.1"]])]);
    let elsewhere = Server::start(Behaviour::Echo);
    let through = Server::start(Behaviour::Proxy(elsewhere.address()));
    let proxy: Proxy = format!("http://{}", through.address()).parse().unwrap();
    let client = Client::new(ClientOptions {
        nameservers: kitbag_http::Nameservers::These(vec![dns.address()]),
        proxy: Some(proxy),
        ..ClientOptions::default()
    });
    for url in [server.url(), server.url_as("localhost"), server.url_as("name.test")] {
        let addresses = vec!["127.0.0.1/32".parse().unwrap()];
        let caller = Caller::new(&client, vec![HttpGrant { addresses, ..grant(&url) }]);
        assert_eq!(caller.get(&url).unwrap().status, 200, "{url}");
    }
    assert!(through.seen().is_nothing());
}

#[test]
fn roots_are_certificates_in_pem() {
    let mut roots = kitbag_http::Roots::default();
    assert!(roots.add_pem(b"nothing").is_err());
    assert!(
        roots.add_pem(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----").is_err()
    );
}
