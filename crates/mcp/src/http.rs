//! MCP over Streamable HTTP.
//!
//! What reaches the protocol has passed, in this order: a bound on connections,
//! the token, a bound on the rate, a bound on the body, strict JSON. The `Host`
//! and `Origin` headers are checked by the protocol's library, told what to
//! allow here.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::handler::Handler;
use crate::message::{self, Line};
use crate::rate::Rate;
use crate::server::Server;
use crate::token::Token;

/// Where clients connect.
pub const PATH: &str = "/mcp";

/// How long an open connection may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// How long calls may go on after the server was told to end.
const DRAIN_TIME: Duration = Duration::from_secs(10);

type Reply = Response<BoxBody<Bytes, Infallible>>;

/// How HTTP is served.
#[derive(Debug)]
pub struct HttpOptions {
    /// What a client has to show; `None` lets everybody in who can connect.
    pub token: Option<Token>,
    /// Names, with or without a port, by which clients may call the server,
    /// beside those of the loopback interface.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call it. On a loopback address its own is
    /// one; else none are by default.
    pub allowed_origins: Vec<String>,
    /// The largest request. Default: 4 MiB.
    pub body_bytes: usize,
    /// Sessions at once, of clients that speak a revision with a handshake.
    /// Default: 1,000.
    pub sessions: usize,
    /// Connections at once. Default: 1,000.
    pub connections: usize,
    /// Requests a second, of all clients together. Default: 10,000.
    pub rate: NonZeroU32,
}

impl Default for HttpOptions {
    fn default() -> Self {
        const RATE: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");
        Self {
            token: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            body_bytes: 4 << 20,
            sessions: 1_000,
            connections: 1_000,
            rate: RATE,
        }
    }
}

impl Server {
    /// Serves any number of clients until `end` is cancelled: then no connection
    /// is taken any more, and calls that run have ten seconds to end.
    ///
    /// # Errors
    ///
    /// Where `listener` cannot be used.
    pub async fn serve_http(
        &self,
        listener: std::net::TcpListener,
        options: HttpOptions,
        end: CancellationToken,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let places = Arc::new(Semaphore::new(options.connections));
        let own = own_origins(&listener.local_addr()?);
        let front = Arc::new(Front::new(self, options, own));
        let graceful = GracefulShutdown::new();
        let _alert = self.keep_alert();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&listener, &places) => accepted,
                () = end.cancelled() => break,
                () = self.closing().cancelled() => break,
            };
            let (stream, place) = match accepted {
                Ok(accepted) => accepted,
                // Such as too many open files: the next one may be luckier.
                Err(error) => {
                    tracing::warn!("a connection was not taken: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let front = Arc::clone(&front);
            let service = service_fn(move |request| {
                let front = Arc::clone(&front);
                async move { Ok::<_, Infallible>(front.serve(request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .serve_connection(TokioIo::new(stream), service);
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                let _place = place;
                if let Err(error) = connection.await {
                    tracing::debug!("a connection broke off: {error}");
                }
            });
        }
        drop(listener);
        front.drain().await;
        // What is left are streams that wait for something to happen.
        front.streams.cancel();
        self.closing().cancel();
        let _ = tokio::time::timeout(Duration::from_secs(1), graceful.shutdown()).await;
        Ok(())
    }
}

type Place = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(tokio::net::TcpStream, Place)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

/// What stands in front of the protocol.
struct Front {
    server: Server,
    options: HttpOptions,
    sessions: Arc<LocalSessionManager>,
    protocol: StreamableHttpService<Handler, LocalSessionManager>,
    /// Ends the streams on which clients wait for news.
    streams: CancellationToken,
    rate: Rate,
    running: AtomicUsize,
    idle: Notify,
    is_draining: AtomicBool,
}

impl Front {
    fn new(server: &Server, options: HttpOptions, own_origins: Vec<String>) -> Self {
        let streams = CancellationToken::new();
        let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let hosts = loopback.into_iter().chain(options.allowed_hosts.iter().cloned());
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(own_origins.into_iter().chain(options.allowed_origins.clone()))
            .enforce_origin_validation()
            .with_cancellation_token(streams.clone())
            .with_max_request_body_bytes(options.body_bytes);
        let sessions = Arc::new(LocalSessionManager::default());
        let principal = match &options.token {
            Some(token) => token.principal(),
            None => "http".to_owned(),
        };
        let handler = server.clone();
        let make = move || Ok(Handler::new(handler.clone(), &principal));
        let protocol = StreamableHttpService::new(make, Arc::clone(&sessions), config);
        Self {
            server: server.clone(),
            rate: Rate::new(options.rate),
            options,
            sessions,
            protocol,
            streams,
            running: AtomicUsize::new(0),
            idle: Notify::new(),
            is_draining: AtomicBool::new(false),
        }
    }

    async fn serve(&self, request: Request<Incoming>) -> Reply {
        match (request.uri().path(), request.method()) {
            ("/healthz", &Method::GET) => text(StatusCode::OK, "ok\n"),
            ("/readyz", &Method::GET) => match self.is_draining.load(Ordering::Relaxed) {
                false => text(StatusCode::OK, "ready\n"),
                true => text(StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
            },
            ("/metrics" | PATH, _) if !self.is_authorised(&request) => self.unauthorised(),
            ("/metrics", &Method::GET) => self.metrics().await,
            (PATH, _) => self.speak(request).await,
            _ => text(StatusCode::NOT_FOUND, "not found; MCP is spoken at /mcp\n"),
        }
    }

    fn is_authorised<B>(&self, request: &Request<B>) -> bool {
        let Some(token) = &self.options.token else { return true };
        let shown = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown.and_then(|value| {
            let (scheme, token) = value.split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
        });
        shown.is_some_and(|shown| token.is(shown))
    }

    fn unauthorised(&self) -> Reply {
        self.server.metrics().refused("token");
        let mut refused =
            text(StatusCode::UNAUTHORIZED, "send the token as `Authorization: Bearer …`\n");
        refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        refused
    }

    /// Passes a request on to the protocol.
    async fn speak(&self, request: Request<Incoming>) -> Reply {
        if let Err(wait) = self.rate.take() {
            self.server.metrics().refused("rate");
            return busy(StatusCode::TOO_MANY_REQUESTS, "too many requests", wait);
        }
        if request.method() != Method::POST {
            return self.protocol.handle(request).await;
        }
        let _running = Running::new(self);
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, self.options.body_bytes).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                let limit = self.options.body_bytes >> 20;
                let message = format!("a request may have {limit} MiB\n");
                return text(StatusCode::PAYLOAD_TOO_LARGE, &message);
            }
            Err(error) => return text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
        };
        let begins = match message::read(&body) {
            Line::Refused(answer) => return json(StatusCode::BAD_REQUEST, &answer),
            Line::Message(message) => is_initialize(&message),
            Line::Empty => false,
        };
        if begins && self.sessions.sessions.read().await.len() >= self.options.sessions {
            self.server.metrics().refused("sessions");
            let wait = Duration::from_secs(30);
            return busy(StatusCode::SERVICE_UNAVAILABLE, "too many sessions", wait);
        }
        self.protocol.handle(Request::from_parts(head, Full::new(body))).await
    }

    async fn metrics(&self) -> Reply {
        let sessions = self.sessions.sessions.read().await.len();
        let mut reply = text(StatusCode::OK, &self.server.metrics().text(sessions));
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        reply
    }

    /// Waits for the requests that run, but not for ever.
    async fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        let idle = async {
            loop {
                let idle = self.idle.notified();
                if self.running.load(Ordering::Relaxed) == 0 {
                    return;
                }
                idle.await;
            }
        };
        if tokio::time::timeout(DRAIN_TIME, idle).await.is_err() {
            tracing::warn!(
                "calls still run {}s after the end; they are ended",
                DRAIN_TIME.as_secs()
            );
        }
    }
}

fn is_initialize(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}

/// Counts a request that runs.
struct Running<'a>(&'a Front);

impl<'a> Running<'a> {
    fn new(front: &'a Front) -> Self {
        front.running.fetch_add(1, Ordering::Relaxed);
        Self(front)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// The origins of pages that come from a loopback address itself. There are none,
/// so what shows one is a client that follows the letter.
fn own_origins(address: &SocketAddr) -> Vec<String> {
    match is_loopback(address) {
        true => vec![format!("http://{address}"), format!("http://localhost:{}", address.port())],
        false => Vec::new(),
    }
}

/// Whether an address is reached from this machine only.
pub fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

fn text(status: StatusCode, text: &str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(text.to_owned())).boxed());
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

fn json(status: StatusCode, message: &ServerJsonRpcMessage) -> Reply {
    let mut reply = text(status, &serde_json::to_string(message).unwrap_or_default());
    let kind = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

fn busy(status: StatusCode, what: &str, wait: Duration) -> Reply {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let mut reply = text(status, &format!("{what}; try again in {seconds}s\n"));
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    reply
}
