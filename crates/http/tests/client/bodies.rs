//! Size and time limits.

use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kitbag_base::ByteSize;
use kitbag_http::{Client, RequestError, RequestTimes, TimePhase};
use kitbag_policy::http::{HttpGrant, RefusalKind};
use kitbag_test_servers::{Answer, Authority, Behaviour, Server};

use crate::caller::{Caller, any_method, client, grant};

#[test]
fn oversized_bodies_are_refused_and_cut() {
    let server = Server::start(Behaviour::Echo);
    let max_request = ByteSize::bytes(16 << 10);
    let granted = HttpGrant { max_request, ..any_method(&server.url()) };
    let caller = Caller::new(&Client::default(), vec![granted]);
    assert_eq!(
        caller.send("POST", &server.url()).body(vec![0; 16 << 10]).whole().unwrap().status,
        200
    );
    // The length is known, so nothing is sent.
    let refused = caller.send("POST", &server.url()).body(vec![0; (16 << 10) + 1]).refused();
    assert_eq!(refused.0, RefusalKind::Size);
    assert_eq!(server.seen().requests.len(), 1);
    // The length becomes known while the body is sent.
    let frames = (0..17).map(|_| Ok(Frame::data(Bytes::from(vec![0; 1 << 10]))));
    let stream = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
    let refused = caller.send("POST", &server.url()).stream(stream).refused();
    assert_eq!(refused.0, RefusalKind::Size);
    assert!(!server.wait_until_closed().requests[1].complete);
    // Data that was not sent has no bytes and no rule in the record.
    let (records, more) = caller.requests.records();
    let outcomes = records.iter().map(|it| (it.is_sent, it.refused, it.grant.is_empty()));
    let (sent, size) = ((true, None, false), Some(RefusalKind::Size));
    assert_eq!(outcomes.collect::<Vec<_>>(), [sent, (false, size, true), (true, size, false)]);
    assert_eq!((records[1].request_bytes, more), (0, 0));
    let (refused, more) = caller.requests.refused();
    assert_eq!((refused.len(), refused[0].times, more), (1, 2, 0));
}

#[test]
fn oversized_responses_are_refused() {
    let authority = Authority::new();
    let check = |server: &Server| {
        let max_response = ByteSize::bytes(16 << 10);
        let granted = HttpGrant { max_response, ..grant(&server.url()) };
        let caller = Caller::new(&client(None, Some(&authority)), vec![granted]);
        let (kind, reason) = caller.refused(&server.url());
        assert_eq!(kind, RefusalKind::Size, "{reason}");
        let (records, _) = caller.requests.records();
        assert_eq!((records[0].is_sent, records[0].status), (true, Some(200)));
        assert_eq!(records[0].refused, Some(RefusalKind::Size));
        drop(caller);
        assert_eq!(server.wait_until_closed().open, 0);
    };
    check(&Server::start(Behaviour::Answer(Answer::new(200, vec![0; (16 << 10) + 1]))));
    check(&Server::start(Behaviour::Endless));
    check(&Server::start_tls(Behaviour::Endless, &authority.local().http1()));
}

#[test]
fn responses_may_reach_their_limit() {
    let server = Server::start(Behaviour::Answer(Answer::new(200, vec![7; 8 << 20])));
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    assert_eq!(caller.get(&server.url()).unwrap().body.len(), 8 << 20);
}

#[test]
fn http2_responses_are_bounded() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Endless, &authority.local());
    let caller = Caller::new(&client(None, Some(&authority)), vec![grant(&server.url())]);
    assert_eq!(caller.refused(&server.url()).0, RefusalKind::Size);
    let server = Server::start_tls(
        Behaviour::Answer(Answer::new(200, vec![7; 8 << 20])),
        &authority.local(),
    );
    let caller = Caller::new(&client(None, Some(&authority)), vec![grant(&server.url())]);
    assert_eq!(caller.get(&server.url()).unwrap().body.len(), 8 << 20);
}

#[test]
fn slow_servers_are_abandoned_at_the_time_limit() {
    let authority = Authority::new();
    let pieces = Server::start(Behaviour::Pieces);
    pieces.send("a piece");
    let servers = [
        Server::start(Behaviour::Silent),
        Server::start(Behaviour::Mute),
        Server::start_tls(Behaviour::Mute, &authority.local()),
        Server::start(Behaviour::endless_interim()),
        pieces,
    ];
    for server in servers {
        let time = Some(Duration::from_millis(300));
        let granted = HttpGrant { time, ..grant(&server.url()) };
        let caller = Caller::new(&client(None, Some(&authority)), vec![granted]);
        let (kind, reason) = caller.refused(&server.url());
        assert_eq!(kind, RefusalKind::Time, "{reason}");
        server.wait_until_closed();
    }
}

#[test]
fn tools_can_set_shorter_times() {
    let time = Some(Duration::from_millis(100));
    let check = |server: &Server, times: RequestTimes, phase: TimePhase| {
        let caller = Caller::new(&client(None, None), vec![grant(&server.url())]);
        let error = caller.send("GET", &server.url()).times(times).whole().unwrap_err();
        assert!(matches!(error, RequestError::Time(at) if at == phase), "{error}");
        server.wait_until_closed();
    };
    let times = RequestTimes { first_byte: time, ..RequestTimes::default() };
    check(&Server::start(Behaviour::Silent), times, TimePhase::FirstByte);
    let pieces = Server::start(Behaviour::Pieces);
    pieces.send("a piece");
    let times = RequestTimes { between_bytes: time, ..RequestTimes::default() };
    check(&pieces, times, TimePhase::BetweenBytes);
    let mute = Server::start_tls(Behaviour::Mute, &Authority::new().local());
    let times = RequestTimes { connect: time, ..RequestTimes::default() };
    check(&mute, times, TimePhase::Connect);
}
