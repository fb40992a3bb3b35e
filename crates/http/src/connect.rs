//! Opens a connection for an allowed request: resolves, checks and connects.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kitbag_policy::http::{Host, HttpRequest, Scheme};
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::active_request::ActiveRequest;
use crate::client::Shared;
use crate::dial::{Stream, dial};
use crate::error::RequestError;
use crate::pool::{Connection, Permit, Sender};
use crate::proxy::tunnel;
use crate::tls::words;

/// The time limit for one address if there are others.
const ADDRESS_TIME: Duration = Duration::from_secs(3);

/// The time limit for the whole connection.
const CONNECT_TIME: Duration = Duration::from_secs(15);

/// The size of a read from a connection, and the largest header of a response.
const BUFFER_BYTES: usize = 64 << 10;

/// The most header fields of one response.
const MOST_FIELDS: usize = 200;

/// Opens a connection for a request to a checked address.
pub(crate) async fn connect(
    shared: &Arc<Shared>,
    allowed: &ActiveRequest,
) -> Result<Connection, RequestError> {
    let request = allowed.request();
    let permit = shared.pool.permit(&allowed.call().account).await.ok_or(RequestError::Ended)?;
    if let Some(recordings) = shared.recordings() {
        return connection(recordings.open(request), None, false, permit).await;
    }
    let addresses = match request.host() {
        Host::Name(_) if is_resolved_by_proxy(shared, allowed) => None,
        Host::Address(address) => Some(vec![*address]),
        Host::Name(name) => {
            let found = shared.resolver.addresses(name).await;
            Some(found.map_err(|reason| RequestError::Name { host: name.clone(), reason })?)
        }
    };
    if let Some(addresses) = &addresses {
        allowed.addresses(addresses)?;
    }
    let opened = timeout(CONNECT_TIME, open(shared, request, addresses.as_deref())).await;
    let (stream, address, is_http2) = opened.map_err(|_| RequestError::Connect {
        origin: request.origin_url(),
        reason: "no answer".to_owned(),
        is_refused: false,
    })??;
    connection(stream, address, is_http2, permit).await
}

/// Starts HTTP on an open stream.
async fn connection(
    stream: Box<dyn Stream>,
    address: Option<IpAddr>,
    is_http2: bool,
    permit: Permit,
) -> Result<Connection, RequestError> {
    let alive = CancellationToken::new();
    let ended = alive.clone().cancelled_owned();
    let broken = |error: hyper::Error| RequestError::of_hyper(&error);
    let io = TokioIo::new(stream);
    let sender = if is_http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(BUFFER_BYTES as u32)
            .initial_connection_window_size(4 * BUFFER_BYTES as u32)
            .max_send_buf_size(BUFFER_BYTES)
            .max_header_list_size(BUFFER_BYTES as u32);
        let (sender, connection) = builder.handshake(io).await.map_err(broken)?;
        tokio::spawn(async move {
            tokio::select! { _ = connection => {}, () = ended => {} }
            drop(permit);
        });
        Sender::Http2(sender)
    } else {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(BUFFER_BYTES).max_headers(MOST_FIELDS);
        let (sender, connection) = builder.handshake(io).await.map_err(broken)?;
        tokio::spawn(async move {
            tokio::select! { _ = connection => {}, () = ended => {} }
            drop(permit);
        });
        Sender::Http1(sender)
    };
    Ok(Connection::new(sender, address, alive))
}

/// Returns true if a proxy resolves the host of the request.
fn is_resolved_by_proxy(shared: &Shared, allowed: &ActiveRequest) -> bool {
    let proxies = shared.proxies();
    proxies.resolves && proxies.of(allowed.request(), None).is_some() && allowed.unresolved()
}

/// Opens a stream to one of these addresses, with TLS for `https`. Also returns whether it uses
/// HTTP/2. Without addresses, a proxy resolves the host.
async fn open(
    shared: &Shared,
    request: &HttpRequest,
    addresses: Option<&[IpAddr]>,
) -> Result<(Box<dyn Stream>, Option<IpAddr>, bool), RequestError> {
    let (stream, address) = match (addresses, shared.proxies().of(request, None)) {
        (None, Some(proxy)) => {
            let authority = format!("{}:{}", request.host(), request.port());
            (tunnel(proxy, shared, &request.origin_url(), authority).await?, None)
        }
        (addresses, _) => {
            let (stream, address) = dial_any(shared, request, addresses.unwrap_or(&[])).await?;
            (stream, Some(address))
        }
    };
    if request.scheme() == Scheme::Http {
        return Ok((stream, address, false));
    }
    let name = match request.host() {
        Host::Name(name) => ServerName::try_from(name.clone()),
        Host::Address(address) => Ok(ServerName::from(*address)),
    };
    let failed = |reason: String, is_certificate| RequestError::Tls {
        origin: request.origin_url(),
        reason,
        is_certificate,
    };
    let name = name.map_err(|error| failed(error.to_string(), false))?;
    let connected = TlsConnector::from(shared.tls()?).connect(name, stream).await;
    let stream = connected.map_err(|error| {
        let below = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        let reason = below.map_or_else(|| error.to_string(), words);
        failed(reason, matches!(below, Some(rustls::Error::InvalidCertificate(_))))
    })?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Box::new(stream), address, is_http2))
}

/// Tries the addresses one after the other.
async fn dial_any(
    shared: &Shared,
    request: &HttpRequest,
    addresses: &[IpAddr],
) -> Result<(Box<dyn Stream>, IpAddr), RequestError> {
    let mut last = None;
    for (at, address) in addresses.iter().enumerate() {
        let target = SocketAddr::new(*address, request.port());
        let dial = async {
            match shared.proxies().of(request, Some(*address)) {
                Some(proxy) => {
                    tunnel(proxy, shared, &request.origin_url(), target.to_string()).await
                }
                None => dial(target).await.map_err(|error| failed(request, &error)),
            }
        };
        let is_last = at + 1 == addresses.len();
        let dialled = match is_last {
            true => dial.await,
            false => timeout(ADDRESS_TIME, dial).await.unwrap_or_else(|_| {
                Err(failed(request, &io::Error::from(io::ErrorKind::TimedOut)))
            }),
        };
        match dialled {
            Ok(stream) => return Ok((stream, *address)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| failed(request, &io::Error::other("it has no address"))))
}

fn failed(request: &HttpRequest, error: &io::Error) -> RequestError {
    RequestError::Connect {
        origin: request.origin_url(),
        reason: error.to_string(),
        is_refused: error.kind() == io::ErrorKind::ConnectionRefused,
    }
}
