//! Each hop of a redirect is a separate request.

use kitbag_http::{Client, RequestError};
use kitbag_policy::http::{HttpGrant, RefusalKind};
use kitbag_test_servers::{Answer, Behaviour, Server};

use crate::caller::{Caller, any_method, grant};

fn following(url: &str, follow: u8) -> HttpGrant {
    HttpGrant { follow, ..any_method(url) }
}

#[test]
fn unfollowed_redirects_are_returned_to_the_tool() {
    let server = Server::start(Behaviour::Redirects);
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    let got = caller.get(&format!("{}/302/1", server.url())).unwrap();
    assert_eq!((got.status.as_u16(), &got.headers["location"] == "/302/0"), (302, true));
    assert_eq!(server.seen().requests.len(), 1);
}

#[test]
fn redirects_are_followed_up_to_the_grant() {
    let server = Server::start(Behaviour::Redirects);
    let client = Client::default();
    let caller = Caller::new(&client, vec![following(&server.url(), 2)]);
    assert_eq!(caller.get(&format!("{}/301/2", server.url())).unwrap().status, 200);
    let got = caller.get(&format!("{}/301/3", server.url())).unwrap();
    assert_eq!((got.status.as_u16(), &got.headers["location"] == "/301/0"), (301, true));
}

#[test]
fn each_hop_counts_as_a_request() {
    let server = Server::start(Behaviour::Redirects);
    let caller = Caller::new(&Client::default(), vec![following(&server.url(), 20)]);
    for _ in 0..2 {
        assert_eq!(caller.get(&format!("{}/loop", server.url())).unwrap().status.as_u16() / 100, 3);
    }
    let (kind, _) = caller.refused(&format!("{}/loop", server.url()));
    assert_eq!(kind, RefusalKind::Rate);
    assert_eq!(server.seen().requests.len(), 50);
}

#[test]
fn hops_without_a_grant_are_refused() {
    let server = Server::start(Behaviour::Redirects);
    let other = Server::start(Behaviour::Echo);
    let start = format!("{}/to/**", server.url());
    let caller = Caller::new(&Client::default(), vec![following(&start, 5)]);
    let check = |target: &str, kind: RefusalKind| {
        let url = format!("{}/to/302?{target}", server.url());
        assert_eq!(caller.refused(&url).0, kind, "{target}");
    };
    check(&other.url(), RefusalKind::Host);
    check("/elsewhere", RefusalKind::Path);
    check("http://169.254.169.254/latest", RefusalKind::Host);
    check("http://2852039166/latest", RefusalKind::Host);
    check("file:///etc/passwd", RefusalKind::Scheme);
    check("//user@127.0.0.1/", RefusalKind::Host);
    assert!(other.seen().is_nothing());
    assert!(server.seen().requests.iter().all(|request| request.path() == "/to/302"));
}

#[test]
fn hops_need_a_grant_of_their_address() {
    // The first grant permits the address by its name, the second does not.
    let server = Server::start(Behaviour::Redirects);
    let dns = kitbag_test_servers::Dns::of(&[("name.test", &[&["127.0.0.1"]])]);
    let client = crate::caller::client(Some(&dns), None);
    let first = following(&format!("{}/to/**", server.url()), 5);
    let second = any_method(&server.url_as("name.test"));
    let caller = Caller::new(&client, vec![first, second]);
    let url = format!("{}/to/302?{}/", server.url(), server.url_as("name.test"));
    assert_eq!(caller.refused(&url).0, RefusalKind::Address);
    assert_eq!(server.seen().requests.len(), 1);
}

#[test]
fn credentials_stay_with_their_origin() {
    let to = Server::start(Behaviour::Echo);
    let server = Server::start(Behaviour::Redirects);
    let grants = vec![following(&server.url(), 5), any_method(&to.url())];
    let caller = Caller::new(&Client::default(), grants);
    let send = |url: &str| {
        let sent =
            caller.send("GET", url).header("authorization", "Bearer t").header("cookie", "a=b");
        sent.header("accept", "text/plain").whole().unwrap()
    };
    assert_eq!(send(&format!("{}/to/302?{}/a", server.url(), to.url())).status, 200);
    let away = &to.seen().requests[0];
    assert_eq!((away.header("authorization"), away.header("cookie")), (None, None));
    assert_eq!(away.header("accept").unwrap(), "text/plain");
    assert_eq!(away.header("host").unwrap(), to.address().to_string());
    assert_eq!(send(&format!("{}/302/1", server.url())).status, 200);
    assert_eq!(server.seen().requests.last().unwrap().header("authorization").unwrap(), "Bearer t");
}

#[test]
fn posts_become_gets_or_are_not_resent() {
    let check = |status: u16, method: &str, expected: &[&str]| {
        let server = Server::start(Behaviour::Redirects);
        let caller = Caller::new(&Client::default(), vec![following(&server.url(), 5)]);
        let url = format!("{}/{status}/1", server.url());
        let sent = caller.send(method, &url).header("content-type", "text/plain").body("data");
        let got = sent.whole().unwrap();
        let seen = server.seen();
        let sent: Vec<_> = seen.requests.iter().map(|request| &*request.method).collect();
        assert_eq!(sent, expected, "{status} {method}");
        if let [_, second] = &seen.requests[..] {
            assert_eq!((&*second.body, second.header("content-type")), (&b""[..], None));
            assert_eq!(got.status, 200);
        } else {
            assert_eq!(got.status, status);
        }
    };
    for status in [301, 302, 303] {
        check(status, "POST", &["POST", "GET"]);
    }
    check(303, "PUT", &["PUT", "GET"]);
    for status in [307, 308] {
        check(status, "POST", &["POST"]);
    }
    check(302, "PUT", &["PUT"]);
}

#[test]
fn methods_without_a_body_are_kept() {
    let server = Server::start(Behaviour::Redirects);
    let caller = Caller::new(&Client::default(), vec![following(&server.url(), 5)]);
    let url = format!("{}/307/1", server.url());
    assert_eq!(caller.send("DELETE", &url).whole().unwrap().status, 200);
    let seen = server.seen();
    assert!(seen.requests.iter().all(|request| request.method == "DELETE"));
    assert_eq!(seen.requests.len(), 2);
}

#[test]
fn redirects_to_invalid_urls_are_errors() {
    let answer = Answer::redirect(302, "http://[");
    let server = Server::start(Behaviour::Answer(answer));
    let caller = Caller::new(&Client::default(), vec![following(&server.url(), 5)]);
    let error = caller.get(&server.url()).unwrap_err();
    assert!(matches!(error, RequestError::Protocol(_)), "{error}");
}

#[test]
fn redirect_urls_are_not_normalized() {
    let to = Server::start(Behaviour::Echo);
    let check = |location: &str| {
        let server = Server::start(Behaviour::Answer(Answer::redirect(302, location)));
        let grants = vec![following(&server.url(), 5), any_method(&to.url())];
        let caller = Caller::new(&Client::default(), grants);
        let error = caller.get(&server.url()).unwrap_err();
        let is_error = matches!(error, RequestError::Protocol(_) | RequestError::Refused(_));
        assert!(is_error, "{location:?}: {error}");
    };
    let (url, address) = (to.url(), to.address());
    for location in [
        format!("http:///{address}/x"),
        format!("http:////{address}/x"),
        format!("http:{address}/x"),
        format!("http:/{address}/x"),
        format!("http://@{address}/x"),
        format!("http://user:word@{address}/x"),
        format!("http://{}/x", address.to_string().replace(':', ":0")),
        format!("{url}/a/../x"),
        format!("{url}/%2e%2e/x"),
        format!("//@{address}/x"),
        "/a/../x".to_owned(),
        "/%2e%2e/x".to_owned(),
    ] {
        check(&location);
    }
    check(&format!("{url}/a b"));
    check(&format!("{url}/a\tb"));
    check(&format!("http:\\\\{address}\\"));
    check(&format!("\\\\{address}/"));
    assert!(to.seen().is_nothing());
}

#[test]
fn two_locations_are_not_a_redirect() {
    let to = Server::start(Behaviour::Echo);
    let location = to.url();
    let answer = Answer::redirect(302, &location).header("location", &location);
    let server = Server::start(Behaviour::Answer(answer));
    let grants = vec![following(&server.url(), 5), any_method(&to.url())];
    let caller = Caller::new(&Client::default(), grants);
    assert_eq!(caller.get(&server.url()).unwrap().status, 302);
    assert!(to.seen().is_nothing());
}
