//! The result of a request matches the prior decision.

use std::net::IpAddr;

use kitbag_http::RequestError;
use kitbag_policy::Decision;
use kitbag_policy::http::{HttpGrant, HttpGrants, HttpRequest, Methods, decide};
use kitbag_test_servers::{Behaviour, Dns, Server};

use crate::caller::{Caller, any_method, client, grant};

/// xorshift64: the same requests on every machine.
struct Random(u64);

impl Random {
    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        of[usize::try_from(self.0 % of.len() as u64).unwrap()]
    }
}

#[test]
fn random_requests_end_as_decided() {
    let server = Server::start(Behaviour::Echo);
    let port = server.url_as("x").rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let at = |host: &str, path: &str| format!("http://{host}:{port}{path}");
    let dns = Dns::of(&[
        ("a.test", &[&["127.0.0.1"]]),
        ("open.test", &[&["127.0.0.1"]]),
        ("b.open.test", &[&["127.0.0.1"]]),
    ]);
    let client = client(Some(&dns), None);
    let opening =
        |grant: HttpGrant| HttpGrant { addresses: vec!["127.0.0.0/8".parse().unwrap()], ..grant };
    let grants = vec![
        grant(&at("a.test", "/**")),
        opening(grant(&at("open.test", "/repos/**"))),
        opening(HttpGrant {
            methods: Methods::new(["POST"]).unwrap(),
            encoded_slash: true,
            ..grant(&at("*.open.test", "/*/x"))
        }),
        any_method(&at("127.0.0.1", "/any/**")),
        grant(&at("localhost", "/")),
    ];
    let granted = HttpGrants::from(grants.clone());
    let mut random = Random(0x6b69_7462_6167);
    let (mut allowed, mut denied) = (0, 0);
    for _ in 0..1000 {
        // Half of them are in canonical form.
        let is_plain = random.one(&["plain", "odd"]) == "plain";
        let (method, scheme, host, path) = match is_plain {
            true => (
                random.one(&["GET", "POST", "DELETE"]),
                "http",
                random.one(&["a.test", "open.test", "b.open.test", "127.0.0.1", "localhost"]),
                random.one(&["/repos", "/repos/x", "/any", "/any/x", "/"]).to_owned(),
            ),
            false => {
                let mut path = String::new();
                for _ in 0..3 {
                    let pieces =
                        ["/repos", "/any", "/x", "/a%2Fb", "/..", "/%2e%2e", "/", "", "?q=/.."];
                    path.push_str(random.one(&pieces));
                }
                let hosts = [
                    "open.test",
                    "b.open.test",
                    "127.1",
                    "open.test.",
                    "x@open.test",
                    "OPEN.test",
                    "[::ffff:127.0.0.1]",
                ];
                (
                    random.one(&["GET", "HEAD", "POST", "TRACE", "get"]),
                    random.one(&["http", "HTTP", "ftp"]),
                    random.one(&hosts),
                    path,
                )
            }
        };
        let url = format!("{scheme}://{host}:{port}{path}");
        // The decision that a person is shown, and the decision on the host's addresses, which the
        // former leaves open.
        let expected = match HttpRequest::new(method, &url) {
            Err(refusal) => Some(refusal.kind),
            Ok(request) => {
                let decision = decide(&granted, &request);
                let rest = granted.decide(&request);
                assert_eq!(matches!(decision, Decision::Allowed { .. }), rest.is_ok());
                let loopback: IpAddr = "127.0.0.1".parse().unwrap();
                rest.and_then(|mut rest| rest.addresses(&[loopback])).err().map(|it| it.kind)
            }
        };
        let caller = Caller::new(&client, grants.clone());
        let got = match caller.send(method, &url).whole() {
            Ok(got) => {
                assert_eq!(got.status, 200, "{method} {url}");
                None
            }
            Err(RequestError::Refused(refusal)) => Some(refusal.kind),
            Err(error) => panic!("{method} {url}: {error}"),
        };
        assert_eq!(got, expected, "{method} {url}");
        match expected {
            None => allowed += 1,
            Some(_) => denied += 1,
        }
    }
    assert!(allowed > 50 && denied > 50, "{allowed} {denied}");
}
