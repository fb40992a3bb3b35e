//! MCP over Streamable HTTP.
//!
//! A request passes these checks in order: token, number of connections, host, rate, size and time
//! of the body, available memory, strict JSON. The protocol library checks the `Origin` header
//! against the configured list.

mod accept;
mod allowed_hosts;
mod connection;
mod cross_origin;
mod front;
mod head;
pub(crate) mod health;
pub(crate) mod options;
mod protocol;
mod rate;
mod reply;
mod sessions;
pub(crate) mod token;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use self::connection::{Connections, TimedStream};
use self::front::Front;
use self::options::HttpOptions;
use crate::server::Server;
use crate::session::Peer;
use crate::transport::sys::extend_backlog;

/// Maximum number of connections that wait in the kernel, if the kernel allows as many
/// (`net.core.somaxconn` on Linux, 4,096 by default).
const BACKLOG: i32 = 4_096;

/// Maximum time for receiving the headers of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Maximum size of the headers of a request. At least as much memory is used for each connection
/// while the headers arrive.
const HEAD_BYTES: usize = 16 << 10;

/// Maximum number of connections accepted in a row, far fewer than may be open.
const AT_ONCE: usize = 64;

impl Server {
    /// Serves any number of clients until `end` is cancelled. After that no connections are
    /// accepted, and running calls have ten seconds to finish.
    ///
    /// # Errors
    ///
    /// If `listener` cannot be used.
    pub async fn serve_http(
        &self,
        listener: std::net::TcpListener,
        options: HttpOptions,
        end: CancellationToken,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        extend_backlog(&listener, BACKLOG)?;
        let listener = TcpListener::from_std(listener)?;
        let connections = Connections::new(options.connections);
        let own = own_origins(&listener.local_addr()?);
        let front = Arc::new(Front::new(self, options, own));
        let graceful = GracefulShutdown::new();
        let _awake = self.stay_awake();
        let _unused_sessions = front.sessions.end_unused(self.changes());
        let mut taken = 0_usize;
        loop {
            let accept = async {
                connections.room().await;
                listener.accept().await
            };
            let accepted = tokio::select! {
                accepted = accept => accepted,
                () = end.cancelled() => break,
                () = self.closing().cancelled() => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                // Errors such as too many open files may be temporary.
                Err(error) => {
                    tracing::warn!("a connection was not accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            serve_connection(&front, &connections, &graceful, stream, peer);
            // Received data on these connections is read before others may replace them.
            taken += 1;
            if taken.is_multiple_of(AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
        drop(listener);
        front.drain().await;
        // Only streams that wait for notifications remain.
        front.streams.cancel();
        self.closing().cancel();
        let _ = tokio::time::timeout(Duration::from_secs(1), graceful.shutdown()).await;
        Ok(())
    }
}

/// Serves one connection on a separate task.
fn serve_connection(
    front: &Arc<Front>,
    connections: &Connections,
    graceful: &GracefulShutdown,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let _ = stream.set_nodelay(true);
    let (front, opened) = (Arc::clone(front), connections.take());
    let ended = Arc::clone(&opened);
    let peer = Peer(peer.ip().to_canonical());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (front, opened) = (Arc::clone(&front), Arc::clone(&opened));
        request.extensions_mut().insert(peer);
        async move { Ok::<_, Infallible>(front.serve(request, &opened).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(TimedStream::new(stream)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        tokio::select! {
            // Received data is read before the connection makes room.
            biased;
            served = connection => if let Err(error) = served {
                tracing::debug!("a connection broke: {error}");
            },
            () = ended.ended() => {
                tracing::debug!("a connection without a token was closed to make room for another");
            }
        }
    });
}

/// Origins of pages from the server's own loopback address. The server has no such pages, so only a
/// client that follows the specification strictly sends this origin.
fn own_origins(address: &SocketAddr) -> Vec<String> {
    match is_loopback(address) {
        true => vec![format!("http://{address}"), format!("http://localhost:{}", address.port())],
        false => Vec::new(),
    }
}

/// Returns whether an address is reachable only from this machine.
pub fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
