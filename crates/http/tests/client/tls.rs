//! TLS: trusted authorities and the HTTP version.

use kitbag_http::{Client, RequestError};
use kitbag_test_servers::{Authority, Behaviour, Server};

use crate::caller::{Caller, client, grant};

fn certificate_error(error: RequestError) -> String {
    match error {
        RequestError::Tls { is_certificate: true, reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn custom_authorities_work_with_both_http_versions() {
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
fn invalid_certificates_are_refused() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.local());
    let url = server.url_as("localhost");
    let stranger = Caller::new(&Client::default(), vec![grant(&url)]);
    certificate_error(stranger.get(&url).unwrap_err());
    for tls in [authority.certificate(&["example.com"]), authority.expired(&["localhost"])] {
        let server = Server::start_tls(Behaviour::Echo, &tls);
        let url = server.url_as("localhost");
        let caller = Caller::new(&client(None, Some(&authority)), vec![grant(&url)]);
        let reason = certificate_error(caller.get(&url).unwrap_err());
        let words = ["invalid certificate: not valid for name", "invalid certificate: expired"];
        assert!(words.contains(&&*reason), "{reason}");
        assert!(server.seen().requests.is_empty());
    }
    assert!(server.seen().requests.is_empty());
}

#[test]
fn roots_must_be_pem_certificates() {
    let mut roots = kitbag_http::Roots::default();
    assert!(roots.add_pem(b"nothing").is_err());
    assert!(
        roots.add_pem(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----").is_err()
    );
}
