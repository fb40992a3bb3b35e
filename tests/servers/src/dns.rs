//! A DNS server with answers from a test.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex};

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::svcb::{Alpn, IpHint, SVCB, SvcParamKey, SvcParamValue};
use hickory_proto::rr::rdata::{CNAME, HTTPS};
use hickory_proto::rr::{Name, RData, Record};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::spawn_local;

use crate::runtime::Running;

/// A DNS server on loopback, over UDP and TCP, with its own port.
pub struct Dns {
    address: SocketAddr,
    seen: Arc<(Mutex<Vec<DnsQuestion>>, Condvar)>,
    _running: Running,
}

/// A question that reached the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DnsQuestion {
    /// The name in lower case, without a trailing dot.
    pub name: String,
    /// The type of the record, such as `A`, `AAAA` or `HTTPS`.
    pub kind: String,
}

/// The answer of the server.
#[derive(Clone, Debug)]
pub enum DnsAnswer {
    /// The records of these that match the type of the question, and aliases. Without any, the name
    /// exists but has no record of that type.
    Records(Vec<DnsRecord>),
    /// The name does not exist.
    NoName,
    /// The server has failed.
    Failure,
    /// No answer.
    Silence,
}

/// A record with a TTL of zero, so it is never cached.
#[derive(Clone, Debug)]
pub enum DnsRecord {
    /// An address.
    Address(IpAddr),
    /// Another name, to which the records after it belong.
    Alias(String),
    /// How to reach a service: RFC 9460.
    Https {
        /// The priority; 0 is an alias.
        priority: u16,
        /// The target; `.` is the name itself.
        target: String,
        /// Protocols, such as `h2`.
        alpn: Vec<String>,
        /// An alternative port.
        port: Option<u16>,
        /// Addresses that a client may use without resolving them.
        hints: Vec<IpAddr>,
    },
}

type Answering = dyn Fn(&DnsQuestion, usize) -> DnsAnswer + Send;

impl Dns {
    /// Starts a server. The function answers a question, and receives the number of earlier
    /// questions that were the same.
    pub fn start(answer: impl Fn(&DnsQuestion, usize) -> DnsAnswer + Send + 'static) -> Self {
        // A port that is free for both.
        let (udp, tcp) = (0..100)
            .find_map(|_| {
                let udp = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
                let tcp = std::net::TcpListener::bind(udp.local_addr().ok()?).ok()?;
                Some((udp, tcp))
            })
            .expect("a port on loopback");
        udp.set_nonblocking(true).expect("a socket that does not block");
        tcp.set_nonblocking(true).expect("a socket that does not block");
        let address = udp.local_addr().expect("an address");
        let seen = Arc::<(Mutex<Vec<DnsQuestion>>, Condvar)>::default();
        let recorded = seen.clone();
        let answer: Box<Answering> = Box::new(answer);
        let running = Running::start(move || serve(udp, tcp, Zone { answer, seen: recorded }));
        Self { address, seen, _running: running }
    }

    /// Starts a server for these names. The first question of a type is answered with the addresses
    /// of the first list, the next one with those of the next list, and so on; the last list is
    /// repeated. Any other name does not exist.
    ///
    /// A name that rebinds has two lists: `("evil.test", &[&["203.0.113.7"], &["127.0.0.1"]])`.
    pub fn of(names: &[(&str, &[&[&str]])]) -> Self {
        let parse = |text: &&str| DnsRecord::Address(text.parse().expect("an address"));
        let names: HashMap<_, Vec<Vec<_>>> = names
            .iter()
            .map(|(name, steps)| {
                let steps = steps.iter().map(|step| step.iter().map(parse).collect());
                ((*name).to_owned(), steps.collect())
            })
            .collect();
        Self::start(move |question, earlier| match names.get(&question.name) {
            Some(steps) => {
                let step = steps.get(earlier).or(steps.last()).cloned();
                DnsAnswer::Records(step.unwrap_or_default())
            }
            None => DnsAnswer::NoName,
        })
    }

    /// The address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The questions that have reached the server, in order.
    pub fn seen(&self) -> Vec<DnsQuestion> {
        self.seen.0.lock().expect("the server's thread has panicked").clone()
    }

    /// Waits until at least this many questions have reached the server.
    pub fn wait_for_questions(&self, count: usize) -> Vec<DnsQuestion> {
        let seen = self.seen.0.lock().expect("the server's thread has panicked");
        let waited =
            self.seen.1.wait_timeout_while(seen, crate::seen::PATIENCE, |seen| seen.len() < count);
        let (seen, timeout) = waited.expect("the server's thread has panicked");
        assert!(!timeout.timed_out(), "waited for {count} questions; there are {:#?}", *seen);
        seen.clone()
    }
}

struct Zone {
    answer: Box<Answering>,
    seen: Arc<(Mutex<Vec<DnsQuestion>>, Condvar)>,
}

async fn serve(udp: std::net::UdpSocket, tcp: std::net::TcpListener, zone: Zone) {
    let udp = UdpSocket::from_std(udp).expect("a socket");
    let tcp = TcpListener::from_std(tcp).expect("a socket");
    let zone = Rc::new(zone);
    let streams = zone.clone();
    spawn_local(async move {
        loop {
            let Ok((stream, _)) = tcp.accept().await else { continue };
            spawn_local(serve_stream(stream, streams.clone()));
        }
    });
    let mut bytes = vec![0; 1 << 16];
    loop {
        let Ok((length, from)) = udp.recv_from(&mut bytes).await else { continue };
        if let Some(answer) = zone.answer(&bytes[..length]) {
            let _ = udp.send_to(&answer, from).await;
        }
    }
}

/// Over TCP a message is preceded by its length.
async fn serve_stream(mut stream: TcpStream, zone: Rc<Zone>) {
    while let Ok(length) = stream.read_u16().await {
        let mut bytes = vec![0; length.into()];
        if stream.read_exact(&mut bytes).await.is_err() {
            break;
        }
        if let Some(answer) = zone.answer(&bytes) {
            let length = u16::try_from(answer.len()).expect("a message fits").to_be_bytes();
            if stream.write_all(&[&length[..], &answer].concat()).await.is_err() {
                break;
            }
        }
    }
}

impl Zone {
    fn answer(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let query = Message::from_vec(bytes).ok()?;
        let asked = query.queries.first()?;
        let name = asked.name().to_ascii().to_lowercase();
        let question = DnsQuestion {
            name: name.trim_end_matches('.').to_owned(),
            kind: asked.query_type().to_string(),
        };
        let earlier = {
            let mut seen = self.seen.0.lock().expect("a test has panicked");
            let earlier = seen.iter().filter(|earlier| **earlier == question).count();
            seen.push(question.clone());
            self.seen.1.notify_all();
            earlier
        };
        let mut message = Message::response(query.metadata.id, query.metadata.op_code);
        debug_assert_eq!(message.metadata.message_type, MessageType::Response);
        message.metadata.recursion_desired = query.metadata.recursion_desired;
        message.metadata.recursion_available = true;
        message.add_query(asked.clone());
        match (self.answer)(&question, earlier) {
            DnsAnswer::Records(records) => {
                let mut owner = asked.name().clone();
                for record in records {
                    if let Some(data) = data(&record, &question.kind) {
                        message.add_answer(Record::from_rdata(owner.clone(), 0, data));
                    }
                    if let DnsRecord::Alias(target) = &record {
                        owner = parse(target);
                    }
                }
            }
            DnsAnswer::NoName => message.metadata.response_code = ResponseCode::NXDomain,
            DnsAnswer::Failure => message.metadata.response_code = ResponseCode::ServFail,
            DnsAnswer::Silence => return None,
        }
        Some(message.to_vec().expect("a message of a test"))
    }
}

/// The data of a record for a question of this type.
fn data(record: &DnsRecord, kind: &str) -> Option<RData> {
    let data = match record {
        DnsRecord::Address(IpAddr::V4(address)) if kind == "A" => RData::A((*address).into()),
        DnsRecord::Address(IpAddr::V6(address)) if kind == "AAAA" => RData::AAAA((*address).into()),
        DnsRecord::Alias(target) => RData::CNAME(CNAME(parse(target))),
        DnsRecord::Https { priority, target, alpn, port, hints } if kind == "HTTPS" => {
            let v4: Vec<Ipv4Addr> = hints
                .iter()
                .filter_map(|hint| match hint {
                    IpAddr::V4(address) => Some(*address),
                    IpAddr::V6(_) => None,
                })
                .collect();
            let v6: Vec<Ipv6Addr> = hints
                .iter()
                .filter_map(|hint| match hint {
                    IpAddr::V6(address) => Some(*address),
                    IpAddr::V4(_) => None,
                })
                .collect();
            // In the order of their keys, as in the wire format.
            let mut params = Vec::new();
            if !alpn.is_empty() {
                params.push((SvcParamKey::Alpn, SvcParamValue::Alpn(Alpn(alpn.clone()))));
            }
            if let Some(port) = port {
                params.push((SvcParamKey::Port, SvcParamValue::Port(*port)));
            }
            if !v4.is_empty() {
                let hint = IpHint(v4.into_iter().map(Into::into).collect());
                params.push((SvcParamKey::Ipv4Hint, SvcParamValue::Ipv4Hint(hint)));
            }
            if !v6.is_empty() {
                let hint = IpHint(v6.into_iter().map(Into::into).collect());
                params.push((SvcParamKey::Ipv6Hint, SvcParamValue::Ipv6Hint(hint)));
            }
            RData::HTTPS(HTTPS(SVCB::new(*priority, parse(target), params)))
        }
        _ => return None,
    };
    Some(data)
}

fn parse(name: &str) -> Name {
    let mut name: Name = name.parse().expect("a name");
    name.set_fqdn(true);
    name
}
