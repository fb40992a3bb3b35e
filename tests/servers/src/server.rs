//! A server: its socket, its connections, and what a test says to it.

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

/// What each connection of a server has.
pub(crate) struct Served {
    pub(crate) behaviour: Behaviour,
    /// What the test sends. A connection holds it while it answers.
    pub(crate) pieces: Mutex<mpsc::UnboundedReceiver<Vec<u8>>>,
    /// The bytes of a bomb, made once.
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
                // What ends one connection before it is accepted is nothing for the next.
                let Ok((stream, _)) = listener.accept().await else { continue };
                let connection = recorded.connection();
                spawn_local(accept(stream, acceptor.clone(), served.clone(), connection));
            }
        });
        Self { address, scheme, record, pieces: RefCell::new(Some(send)), _running: running }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its origin by its address, such as `http://127.0.0.1:4711`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Its origin by a name, such as `https://localhost:4711`.
    pub fn url_as(&self, host: &str) -> String {
        format!("{}://{host}:{}", self.scheme, self.port())
    }

    /// What reached it so far.
    pub fn seen(&self) -> Seen {
        self.record.now()
    }

    /// Waits until as many requests, or more, have arrived with their heads.
    pub fn wait_for_requests(&self, count: usize) -> Seen {
        self.record.wait("requests", |seen| seen.requests.len() >= count)
    }

    /// Waits until as many connections, or more, were made.
    pub fn wait_for_connections(&self, count: usize) -> Seen {
        self.record.wait("connections", |seen| seen.connections >= count)
    }

    /// Waits until no connection is open.
    pub fn wait_until_closed(&self) -> Seen {
        self.record.wait("all connections to be closed", |seen| seen.open == 0)
    }

    /// Sends bytes in answer to the first request that is still being answered, or to the next.
    ///
    /// For [`Behaviour::Pieces`] and [`Behaviour::RawPieces`].
    pub fn send(&self, bytes: impl Into<Vec<u8>>) {
        let pieces = self.pieces.borrow();
        let pieces = pieces.as_ref().expect("`end` was not called before");
        pieces.send(bytes.into()).expect("the server is there");
    }

    /// Ends the answer whose bytes `send` gave, and all that come after it.
    pub fn end(&self) {
        self.pieces.borrow_mut().take();
    }
}

/// Serves a connection, by TLS where there is an acceptor.
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
            // It ends with an error where the client closes the connection.
            let _ = raw::serve(stream, &served, &connection).await;
        }
        _ => http::serve(stream, served, connection).await,
    }
}
