//! Servers that break the protocol.

use kitbag_http::{Client, RequestError};
use kitbag_test_servers::{Behaviour, Server};

use crate::caller::{Caller, Got, grant};

fn get(behaviour: Behaviour) -> Result<Got, RequestError> {
    let server = Server::start(behaviour);
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    let got = caller.get(&server.url());
    server.wait_for_connections(1);
    got
}

#[test]
fn non_http_responses_are_errors() {
    for behaviour in [
        Behaviour::too_short(),
        Behaviour::two_lengths(),
        Behaviour::broken_chunk(),
        Behaviour::nul_in_header(),
        Behaviour::carriage_return_in_header(),
        Behaviour::endless_fields(),
        Behaviour::endless_field(),
        Behaviour::endless_trailers(),
        Behaviour::Fields(20_000),
        Behaviour::Raw(b"no http at all\r\n\r\n".to_vec()),
    ] {
        let what = format!("{behaviour:?}");
        let got = get(behaviour);
        assert!(matches!(got, Err(RequestError::Protocol(_))), "{what}: {got:?}");
    }
}

#[test]
fn extra_bytes_do_not_reach_the_next_response() {
    let server = Server::start(Behaviour::too_long());
    let caller = Caller::new(&Client::default(), vec![grant(&server.url())]);
    for _ in 0..2 {
        assert_eq!(&*caller.get(&server.url()).unwrap().body, b"0123456789");
    }
    assert_eq!(server.seen().connections, 2);
}

#[test]
fn chunked_encoding_overrides_a_length() {
    match get(Behaviour::length_and_chunks()) {
        Ok(got) => assert_eq!(&*got.body, b"abc"),
        Err(error) => assert!(matches!(error, RequestError::Protocol(_)), "{error}"),
    }
}

#[test]
fn protocol_upgrades_are_refused() {
    let error = get(Behaviour::switching_protocols()).unwrap_err();
    assert!(matches!(error, RequestError::Upgrade | RequestError::Protocol(_)), "{error}");
}
