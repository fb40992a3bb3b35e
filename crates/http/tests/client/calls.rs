//! Limits on a call, and its end.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kitbag_http::{Account, CallLimits, Client, RequestError, Requests};
use kitbag_policy::http::{HttpGrants, RefusalKind};
use kitbag_test_servers::{Authority, Behaviour, Server};

use crate::caller::{Caller, any_method, client, grant};

#[test]
fn calls_may_send_fifty_requests() {
    let server = Server::start(Behaviour::Echo);
    let client = Client::default();
    let caller = Caller::new(&client, vec![grant(&server.url())]);
    for _ in 0..50 {
        assert_eq!(caller.get(&server.url()).unwrap().status, 200);
    }
    let (kind, reason) = caller.refused(&server.url());
    assert_eq!(
        (kind, &*reason),
        (
            RefusalKind::Rate,
            "the call has reached its limit `requests`, 50; allow more with `limits.requests` of the \
             tool"
        )
    );
    assert_eq!(server.seen().requests.len(), 50);
    let next = Caller::new(&client, vec![grant(&server.url())]);
    assert_eq!(next.get(&server.url()).unwrap().status, 200);
}

#[test]
fn calls_may_send_as_many_requests_as_their_limit() {
    let server = Server::start(Behaviour::Echo);
    let client = Client::default();
    for limit in [1, 3, 60] {
        let grants = HttpGrants::from(vec![grant(&server.url())]);
        let limits = CallLimits { requests: limit };
        let caller = Caller::with(Requests::new(
            &client,
            "tool",
            Account::of_tool("tool"),
            grants,
            limits,
            None,
        ));
        for _ in 0..limit {
            caller.get(&server.url()).unwrap();
        }
        let (kind, reason) = caller.refused(&server.url());
        assert_eq!(kind, RefusalKind::Rate);
        assert!(reason.contains(&format!("limit `requests`, {limit}; ")), "{reason}");
    }
}

#[test]
fn waiting_requests_of_a_call_are_bounded() {
    let server = Server::start(Behaviour::Silent);
    let grants = HttpGrants::from(vec![grant(&server.url())]);
    let limits = CallLimits { requests: 1000 };
    let client = Client::default();
    let caller = Caller::with(Requests::new(
        &client,
        "tool",
        Account::of_tool("tool"),
        grants,
        limits,
        None,
    ));
    let url = server.url();
    let sent: Vec<_> = (0..50).map(|_| caller.send("GET", &url).start()).collect();
    server.wait_for_requests(16);
    let (kind, reason) = caller.refused(&url);
    assert_eq!(kind, RefusalKind::Rate);
    let expected = "50 requests of the call wait for their responses, which is the limit";
    assert_eq!(reason, expected);
    drop(sent);
}

#[test]
fn ending_a_call_cancels_its_requests() {
    let authority = Authority::new();
    let servers = [
        Server::start(Behaviour::Silent),
        Server::start(Behaviour::Mute),
        Server::start_tls(Behaviour::Mute, &authority.local()),
        Server::start_tls(Behaviour::Silent, &authority.local()),
    ];
    for server in servers {
        let caller = Caller::new(&client(None, Some(&authority)), vec![grant(&server.url())]);
        let response = caller.send("GET", &server.url()).start();
        server.wait_for_connections(1);
        let Caller { requests, .. } = caller;
        drop(requests);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(matches!(runtime.block_on(response), Err(RequestError::Ended)));
        server.wait_until_closed();
    }
}

#[test]
fn dropping_a_response_cancels_its_request() {
    let server = Server::start(Behaviour::Silent);
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    let response = caller.send("GET", &server.url()).start();
    server.wait_for_requests(1);
    drop(response);
    server.wait_until_closed();
}

#[test]
fn ending_a_call_ends_its_response_bodies() {
    let server = Server::start(Behaviour::Pieces);
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    let url = server.url();
    let response = caller.send("GET", &url).start();
    server.send("one");
    let mut body = caller.wait(response).unwrap().into_body();
    assert_eq!(caller.wait(body.frame()).unwrap().unwrap().into_data().unwrap(), "one");
    let Caller { requests, runtime, .. } = caller;
    drop(requests);
    server.send("two");
    let ended = runtime.block_on(body.frame()).unwrap();
    assert!(matches!(ended, Err(RequestError::Ended)), "{ended:?}");
}

#[test]
fn interrupted_bodies_are_incomplete() {
    let server = Server::start(Behaviour::Echo);
    let caller = Caller::new(&Client::default(), vec![any_method(&server.url())]);
    let (send, frames) = tokio::sync::mpsc::channel::<Bytes>(1);
    let frames = futures_util::stream::unfold(frames, |mut frames| async {
        let bytes = frames.recv().await?;
        Some((Ok(Frame::data(bytes)), frames))
    });
    let stream = StreamBody::new(frames).boxed_unsync();
    let url = server.url();
    let response = caller.send("POST", &url).stream(stream).start();
    send.blocking_send(Bytes::from_static(b"begun")).unwrap();
    server.wait_for_requests(1);
    let Caller { requests, .. } = caller;
    drop(requests);
    drop((send, response));
    let seen = server.wait_until_closed();
    assert!(!seen.requests[0].complete);
}

#[test]
fn a_thousand_concurrent_requests_are_answered() {
    let server = Server::start(Behaviour::Echo);
    let client = Client::default();
    let callers: Vec<_> =
        (0..100).map(|_| Caller::new(&client, vec![grant(&server.url())])).collect();
    let url = server.url();
    let sent: Vec<_> = callers
        .iter()
        .flat_map(|caller| (0..10).map(|_| caller.send("GET", &url).start()).collect::<Vec<_>>())
        .collect();
    callers[0].wait(async {
        for response in sent {
            let response = response.await.unwrap();
            assert!(!response.into_body().whole().await.unwrap().is_empty());
        }
    });
    assert_eq!(server.seen().requests.len(), 1000);
}

#[test]
fn connections_are_bounded_and_shared() {
    let server = Server::start(Behaviour::Silent);
    let client = Client::default();
    let url = server.url();
    let call = |owner: &str| Caller::of(owner, &client, HttpGrants::from(vec![grant(&url)]));
    let sent = |caller: &Caller, count: usize| -> Vec<_> {
        (0..count).map(|_| caller.send("GET", &url).start()).collect()
    };
    let calls: Vec<_> = (0..16).map(|_| call("hangs")).collect();
    let mut open: Vec<_> = calls.iter().map(|call| sent(call, 16)).collect();
    let seen = server.wait_for_requests(224);
    assert_eq!((seen.connections, seen.open), (224, 224));
    // Tools that wait for their share do not block others from the rest.
    let others: Vec<_> = (0..3).map(|_| call("other")).collect();
    open.extend(others.iter().map(|call| sent(call, 16)));
    let seen = server.wait_for_requests(256);
    assert_eq!((seen.connections, seen.open), (256, 256));
    drop(open);
    server.wait_until_closed();
}

#[test]
fn idle_connections_make_room_for_new_ones() {
    let (server, silent) = (Server::start(Behaviour::Echo), Server::start(Behaviour::Silent));
    let client = Client::default();
    let call =
        |owner: &str, url: &str| Caller::of(owner, &client, HttpGrants::from(vec![grant(url)]));
    let (kept, start) = (call("kept", &server.url()), Instant::now());
    kept.get(&server.url()).unwrap();
    assert_eq!(server.seen().open, 1);
    let url = silent.url();
    let calls: Vec<_> =
        (0..16).map(|number| call(if number < 14 { "one" } else { "other" }, &url)).collect();
    let sent = |call: &Caller| (0..16).map(|_| call.send("GET", &url).start()).collect();
    let open: Vec<Vec<_>> = calls.iter().map(sent).collect();
    assert_eq!(silent.wait_for_requests(256).open, 256);
    server.wait_until_closed();
    // Otherwise it would be kept for 30 s.
    assert!(start.elapsed() < Duration::from_secs(25));
    drop(open);
}

#[test]
fn content_length_of_an_empty_body_is_not_sent() {
    // The bytes that follow would be read as a part of the next request.
    let server = Server::start(Behaviour::Echo);
    let caller = Caller::new(&Client::default(), vec![any_method(&server.url())]);
    for method in ["GET", "POST"] {
        let got = caller.send(method, &server.url()).header("content-length", "40").whole();
        assert_eq!(got.unwrap().status, 200);
    }
    let seen = server.seen();
    let lengths: Vec<_> =
        seen.requests.iter().map(|request| request.header("content-length")).collect();
    assert_eq!(lengths, [Some("0".to_owned()), Some("0".to_owned())]);
}

#[test]
fn concurrent_requests_of_a_call_are_bounded() {
    let server = Server::start(Behaviour::Silent);
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    let url = server.url();
    let mut sent: Vec<_> = (0..20).map(|_| caller.send("GET", &url).start()).collect();
    let seen = server.wait_for_requests(16);
    assert_eq!((seen.requests.len(), seen.open), (16, 16));
    // A finished request makes room for another.
    drop(sent.remove(0));
    server.wait_for_requests(17);
}
