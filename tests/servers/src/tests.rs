//! Each server behaves as declared.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::RecordType;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::*;

/// Sends text and reads until the end of the answer.
fn ask(server: &Server, text: &str) -> Vec<u8> {
    ask_at(server.address(), text)
}

fn ask_at(address: SocketAddr, text: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn get(server: &Server, path: &str) -> String {
    let text = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    String::from_utf8(ask(server, &text)).unwrap()
}

fn body(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn an_echo_answers_with_the_request_and_records_it() {
    let server = Server::start(Behaviour::Echo);
    assert!(server.seen().is_nothing());
    let text = "POST /a?b=c HTTP/1.1\r\nHost: a.test\r\nX-One: 1\r\nConnection: close\r\n\
                Content-Length: 5\r\n\r\nhello";
    let answer = String::from_utf8(ask(&server, text)).unwrap();
    let headers = json!([
        ["host", "a.test"],
        ["x-one", "1"],
        ["connection", "close"],
        ["content-length", "5"]
    ]);
    let expected = json!({
        "method": "POST",
        "target": "/a?b=c",
        "version": "HTTP/1.1",
        "headers": headers,
        "body": "hello",
    });
    assert_eq!(body(&answer), expected);
    let seen = server.wait_until_closed();
    assert_eq!(seen.connections, 1);
    let [request] = &seen.requests[..] else { panic!("{seen:?}") };
    assert_eq!((request.path(), request.body.as_slice()), ("/a", &b"hello"[..]));
    assert_eq!(request.header("X-ONE").as_deref(), Some("1"));
    assert!(request.complete);
}

#[test]
fn redirects_count_down_loop_and_leave_the_site() {
    let server = Server::start(Behaviour::Redirects);
    let location = |path| {
        let answer = get(&server, path);
        let status = answer.split(' ').nth(1).unwrap().to_owned();
        let location = answer.lines().find_map(|line| line.strip_prefix("location: "));
        (status, location.map(str::to_owned))
    };
    let to = |status: &str, target: &str| (status.to_owned(), Some(target.to_owned()));
    assert_eq!(location("/307/2"), to("307", "/307/1"));
    assert_eq!(location("/307/0"), ("200".into(), None));
    assert_eq!(location("/loop"), to("302", "/loop"));
    assert_eq!(location("/to/308?http://b.test/?x=1"), to("308", "http://b.test/?x=1"));
}

#[test]
fn pieces_arrive_when_they_are_sent() {
    for behaviour in [Behaviour::Pieces, Behaviour::RawPieces] {
        let server = Server::start(behaviour);
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
        server.wait_for_requests(1);
        for piece in ["one", "two"] {
            server.send(piece);
            let mut read = Vec::new();
            while !read.ends_with(piece.as_bytes()) {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                read.push(byte[0]);
            }
        }
        server.end();
    }
}

#[test]
fn raw_answers_are_sent_unchanged() {
    let lengths = [
        (Behaviour::too_short(), "0123456789"),
        (Behaviour::too_long(), "forged"),
        (Behaviour::switching_protocols(), "\u{1}\u{2}"),
        (Behaviour::nul_in_header(), "X-Bad: a\0b\r\n\r\nok"),
    ];
    for (behaviour, end) in lengths {
        let server = Server::start(behaviour);
        assert!(get(&server, "/").ends_with(end));
        assert_eq!(server.seen().requests[0].target, "/");
    }
}

#[test]
fn endless_answers_stop_with_the_client() {
    for behaviour in [Behaviour::Endless, Behaviour::endless_fields(), Behaviour::endless_interim()]
    {
        let server = Server::start(behaviour);
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
        stream.read_exact(&mut vec![0; 1 << 20]).unwrap();
        drop(stream);
        server.wait_until_closed();
    }
}

#[test]
fn a_bomb_is_small_and_names_its_encoding() {
    for (coding, name) in
        [(Coding::Gzip, "gzip"), (Coding::Deflate, "deflate"), (Coding::Brotli, "br")]
    {
        let server = Server::start(Behaviour::Bomb(coding, 64));
        let answer = ask(&server, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        assert!(answer.len() < 100_000, "{}", answer.len());
        let field = format!("content-encoding: {name}\r\n");
        assert!(String::from_utf8_lossy(&answer).contains(&field));
    }
}

#[test]
fn thousands_of_fields_are_sent() {
    let server = Server::start(Behaviour::Fields(5000));
    assert!(get(&server, "/").contains("x-4999: value\r\n"));
}

#[test]
fn silent_servers_read_requests_and_mute_ones_only_accept() {
    let silent = Server::start(Behaviour::Silent);
    let mut stream = TcpStream::connect(silent.address()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    assert_eq!(silent.wait_for_requests(1).requests[0].target, "/");

    let mute = Server::start(Behaviour::Mute);
    let _stream = TcpStream::connect(mute.address()).unwrap();
    assert_eq!(mute.wait_for_connections(1).requests, []);
}

#[test]
fn a_proxy_connects_to_its_target() {
    let target = Server::start(Behaviour::Echo);
    let proxy = Server::start(Behaviour::Proxy(target.address()));
    let inner = "GET /x HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.write_all(b"CONNECT b.test:80 HTTP/1.1\r\nHost: b.test\r\n\r\n").unwrap();
    let mut head = [0; 26];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 Connected\r\n\r\n");
    stream.write_all(inner.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(body(&answer)["target"], "/x");
    assert_eq!(proxy.seen().requests[0].target, "b.test:80");
    assert_eq!(target.seen().requests.len(), 1);
}

/// Makes one request over TLS, with HTTP/2 if ALPN selects it.
fn ask_over_tls(server: &Server, name: &str, root: &Authority) -> Result<Value, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(root.der())).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
        let is_2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(stream);
        let request = hyper::Request::builder().uri("https://a.test/x");
        let request =
            request.header("host", "a.test").body(Full::<bytes::Bytes>::default()).unwrap();
        let answer = if is_2 {
            let (mut send, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            tokio::spawn(connection);
            send.send_request(request).await.unwrap()
        } else {
            let (mut send, connection) =
                hyper::client::conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            send.send_request(request).await.unwrap()
        };
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        Ok(serde_json::from_slice(&bytes).unwrap())
    })
}

#[test]
fn a_client_that_trusts_the_root_uses_http_2_over_tls() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.local());
    let answer = ask_over_tls(&server, "localhost", &authority).unwrap();
    assert_eq!((&answer["version"], &answer["method"]), (&json!("HTTP/2.0"), &json!("GET")));
    let server = Server::start_tls(Behaviour::Echo, &authority.local().http1());
    let answer = ask_over_tls(&server, "localhost", &authority).unwrap();
    assert_eq!(answer["version"], "HTTP/1.1");
}

#[test]
fn tls_fails_for_another_root_name_or_time() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.local());
    let error = ask_over_tls(&server, "localhost", &Authority::new()).unwrap_err();
    assert!(error.contains("UnknownIssuer") || error.contains("BadSignature"), "{error}");
    let error = ask_over_tls(&server, "a.test", &authority).unwrap_err();
    assert!(error.contains("not valid for name"), "{error}");
    let server = Server::start_tls(Behaviour::Echo, &authority.expired(&["localhost"]));
    let error = ask_over_tls(&server, "localhost", &authority).unwrap_err();
    assert!(error.contains("expired"), "{error}");
    assert_eq!(server.seen().requests, []);
}

/// Sends a question over UDP or TCP.
fn resolve(dns: &Dns, name: &str, kind: RecordType, tcp: bool) -> Message {
    let mut message = Message::query();
    message.add_query(Query::query(name.parse().unwrap(), kind));
    let bytes = message.to_vec().unwrap();
    let answer = if tcp {
        let length = (bytes.len() as u16).to_be_bytes();
        let mut stream = TcpStream::connect(dns.address()).unwrap();
        stream.write_all(&[&length[..], &bytes].concat()).unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut answer).unwrap();
        answer
    } else {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.send_to(&bytes, dns.address()).unwrap();
        let mut answer = vec![0; 4096];
        let length = socket.recv(&mut answer).unwrap();
        answer.truncate(length);
        answer
    };
    let answer = Message::from_vec(&answer).unwrap();
    assert_eq!(answer.metadata.id, message.metadata.id);
    answer
}

fn records(message: &Message) -> Vec<String> {
    message.answers.iter().map(|record| record.data.to_string()).collect()
}

#[test]
fn a_name_rebinds_and_another_does_not_exist() {
    let dns = Dns::of(&[
        ("evil.test", &[&["203.0.113.7"], &["127.0.0.1", "::1"]]),
        ("both.test", &[&["203.0.113.7", "10.0.0.1"]]),
    ]);
    let ask = |name, kind, tcp| records(&resolve(&dns, name, kind, tcp));
    assert_eq!(ask("Evil.test.", RecordType::A, false), ["203.0.113.7"]);
    assert_eq!(ask("evil.test.", RecordType::A, true), ["127.0.0.1"]);
    assert_eq!(ask("evil.test.", RecordType::A, false), ["127.0.0.1"]);
    assert_eq!(ask("evil.test.", RecordType::AAAA, false), Vec::<String>::new());
    assert_eq!(ask("evil.test.", RecordType::AAAA, false), ["::1"]);
    assert_eq!(ask("both.test.", RecordType::A, false), ["203.0.113.7", "10.0.0.1"]);
    let none = resolve(&dns, "none.test.", RecordType::A, false);
    assert_eq!(none.metadata.response_code, ResponseCode::NXDomain);
    assert_eq!(dns.seen().len(), 7);
    assert_eq!(dns.seen()[0], DnsQuestion { name: "evil.test".into(), kind: "A".into() });
}

#[test]
fn https_records_have_hints_and_aliases_are_followed() {
    let dns = Dns::start(|question, _| match question.kind.as_str() {
        "HTTPS" => DnsAnswer::Records(vec![DnsRecord::Https {
            priority: 1,
            target: ".".into(),
            alpn: vec!["h2".into()],
            port: Some(8443),
            hints: vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
        }]),
        "A" => DnsAnswer::Records(vec![
            DnsRecord::Alias("other.test".into()),
            DnsRecord::Address("192.0.2.1".parse().unwrap()),
        ]),
        _ => DnsAnswer::Failure,
    });
    let answer = records(&resolve(&dns, "a.test.", RecordType::HTTPS, false));
    assert_eq!(answer, ["1 . alpn=h2, port=8443 ipv4hint=127.0.0.1, ipv6hint=::1,"]);
    let answer = resolve(&dns, "a.test.", RecordType::A, false);
    assert_eq!(records(&answer), ["other.test.", "192.0.2.1"]);
    assert_eq!(answer.answers[1].name.to_string(), "other.test.");
    let answer = resolve(&dns, "a.test.", RecordType::TXT, false);
    assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
}

/// Reads the line with which NATS greets a client.
fn nats_greeting(port: u16) -> Value {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let mut line = String::new();
    BufReader::new(&mut stream).read_line(&mut line).unwrap();
    serde_json::from_str(line.strip_prefix("INFO ").unwrap()).unwrap()
}

#[test]
fn nats_keeps_its_port_across_restarts() {
    let mut server = NatsServer::start();
    let port = server.port();
    assert_eq!(nats_greeting(port)["jetstream"], true);
    server.kill();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    server.start_again();
    assert_eq!(nats_greeting(port)["port"], port);
    server.stop();
    server.start_again();
    assert_eq!(server.port(), port);
}

#[test]
fn nats_offers_tls_and_accounts() {
    let tls = Authority::new().local();
    let users = "authorization { users: [{ user: a, password: b }] }";
    let server = NatsServer::start_with(users, Some(&tls));
    assert!(server.url().starts_with("tls://127.0.0.1:"));
    let greeting = nats_greeting(server.port());
    assert_eq!(
        (&greeting["tls_required"], &greeting["auth_required"]),
        (&json!(true), &json!(true))
    );
}
