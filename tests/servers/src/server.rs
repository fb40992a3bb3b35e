//! A server: its socket, its connections, and its control by a test.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::HandshakeKind;

use crate::runtime::Running;
use crate::seen::{Connection, Record};
use crate::{Behaviour, Seen, Tls, http, raw};

/// A server on loopback.
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    record: Record,
    pieces: RefCell<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    _running: Running,
}

/// The state that all connections of a server share.
pub(crate) struct Served {
    pub(crate) behaviour: Behaviour,
    /// The bytes from the test. A connection locks it while it answers.
    pub(crate) pieces: Mutex<mpsc::UnboundedReceiver<Vec<u8>>>,
    /// The bytes of a bomb, compressed once.
    pub(crate) bomb: Vec<u8>,
}

impl Server {
    /// Starts a server for HTTP/1.1, and HTTP/2 with prior knowledge, on 127.0.0.1.
    pub fn start(behaviour: Behaviour) -> Self {
        Self::new(behaviour, Ipv4Addr::LOCALHOST.into(), None)
    }

    /// Starts a server over TLS.
    pub fn start_tls(behaviour: Behaviour, tls: &Tls) -> Self {
        Self::new(behaviour, Ipv4Addr::LOCALHOST.into(), Some(tls))
    }

    /// Starts a server on another address of this machine, such as `::1` or `127.0.0.2`.
    pub fn start_at(behaviour: Behaviour, address: IpAddr, tls: Option<&Tls>) -> Self {
        Self::new(behaviour, address, tls)
    }

    fn new(behaviour: Behaviour, ip: IpAddr, tls: Option<&Tls>) -> Self {
        let listener = TcpListener::bind((ip, 0)).expect("a port on loopback");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let address = listener.local_addr().expect("an address");
        let record = Record::default();
        let (send, receive) = mpsc::unbounded_channel();
        let acceptor = tls.map(|tls| TlsAcceptor::from(Arc::new(tls.server())));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let recorded = record.clone();
        let running = Running::start(move || async move {
            let bomb = match behaviour {
                Behaviour::Bomb(coding, mebibytes) => crate::bomb::zeros(coding, mebibytes),
                _ => Vec::new(),
            };
            let served = Rc::new(Served { behaviour, pieces: Mutex::new(receive), bomb });
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            loop {
                // An error of one connection does not affect the next one.
                let Ok((stream, _)) = listener.accept().await else { continue };
                let connection = recorded.connection();
                spawn_local(accept(stream, acceptor.clone(), served.clone(), connection));
            }
        });
        Self { address, scheme, record, pieces: RefCell::new(Some(send)), _running: running }
    }

    /// The address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port that the server listens at.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The origin with the address, such as `http://127.0.0.1:4711`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// The origin with a host name, such as `https://localhost:4711`.
    pub fn url_as(&self, host: &str) -> String {
        format!("{}://{host}:{}", self.scheme, self.port())
    }

    /// The connections and requests until now.
    pub fn seen(&self) -> Seen {
        self.record.now()
    }

    /// Waits until the heads of at least this many requests have arrived.
    pub fn wait_for_requests(&self, count: usize) -> Seen {
        self.record.wait("requests", |seen| seen.requests.len() >= count)
    }

    /// Waits until there were at least this many connections.
    pub fn wait_for_connections(&self, count: usize) -> Seen {
        self.record.wait("connections", |seen| seen.connections >= count)
    }

    /// Waits until no connection is open.
    pub fn wait_until_closed(&self) -> Seen {
        self.record.wait("all connections to be closed", |seen| seen.open == 0)
    }

    /// Sends bytes in response to the first unfinished request, or to the next one.
    ///
    /// For [`Behaviour::Pieces`] and [`Behaviour::RawPieces`].
    pub fn send(&self, bytes: impl Into<Vec<u8>>) {
        let pieces = self.pieces.borrow();
        let pieces = pieces.as_ref().expect("`end` was not called before");
        pieces.send(bytes.into()).expect("the server is there");
    }

    /// Ends the answer whose bytes come from `send`, and all later answers.
    pub fn end(&self) {
        self.pieces.borrow_mut().take();
    }
}

/// Serves a connection, over TLS if there is an acceptor.
async fn accept(
    mut stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    served: Rc<Served>,
    connection: Connection,
) {
    let _ = stream.set_nodelay(true);
    if matches!(served.behaviour, Behaviour::Mute) {
        let mut ignored = [0; 4096];
        while stream.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
        return;
    }
    match acceptor {
        // A client that does not trust the certificate ends the connection here.
        Some(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
                    connection.resumes();
                }
                serve(stream, served, connection).await;
            }
        }
        None => serve(stream, served, connection).await,
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    served: Rc<Served>,
    connection: Connection,
) {
    match served.behaviour {
        Behaviour::Raw(_)
        | Behaviour::RawPieces
        | Behaviour::RawEndless(..)
        | Behaviour::Proxy(_) => {
            // This is an error if the client closes the connection.
            let _ = raw::serve(stream, &served, &connection).await;
        }
        _ => http::serve(stream, served, connection).await,
    }
}
