//! MCP over Streamable HTTP.
//!
//! A request reaches the protocol after these checks, in this order: the token, a bound on
//! connections, the host, a bound on the rate, a bound on the body and on its time, memory for
//! it, strict JSON. The protocol's library checks the `Origin` header against the list that it
//! is given here.

mod accept;
mod cross_origin;
mod head;
mod reply;
mod sessions;

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use kitbag_contract::json::Digits;
use kitbag_contract::text::shown;
use kitbag_contract::{SESSION_IDLE, shell};
use kitbag_host::{MemoryBudget, Reservation};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, GetMeta};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use self::accept::{Accepted, not_acceptable};
use self::head::{ambiguity, bearer, unknown_version};
use self::reply::{
    Reply, as_json_rpc, busy, ending, is_of_oauth, no_oauth, not_found, reply_of, text,
};
use self::sessions::{SessionInUse, Sessions};
use crate::allowed_hosts::AllowedHosts;
use crate::connection::{Connection, Connections, Counted, Watched};
use crate::handler::Handler;
use crate::handshake;
use crate::message::{self, Line, MESSAGE_BYTES};
use crate::pending::{Pending, PendingRequest};
use crate::rate::Rate;
use crate::server::Server;
use crate::session::{self, Peer, Session};
use crate::sys::extend_backlog;
use crate::token::Token;

/// Connections that wait in the kernel until they are taken, where it lets as many
/// wait (`net.core.somaxconn` on Linux, 4,096 by default).
const BACKLOG: i32 = 4_096;

/// Where clients connect.
pub const PATH: &str = "/mcp";

/// The same, as some clients write it.
const PATH_WITH_SLASH: &str = "/mcp/";

/// How long an open connection may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// How long the body of a request may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The longest head of a request. As much is kept for each connection while its head
/// arrives, or longer.
const HEAD_BYTES: usize = 16 << 10;

/// Connections that are taken in a row, far fewer than may be open.
const AT_ONCE: usize = 64;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// What a request of a session has, for messages.
const IN_SESSION: &str = ", and the `Mcp-Session-Id` of its answer with each request";

/// How long calls may go on after the server was asked to end.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// How HTTP is served.
#[derive(Debug)]
pub struct HttpOptions {
    /// What a client has to show; `None` lets everybody in who can connect.
    pub token: Option<Token>,
    /// Names, with or without a port, by which clients may call the server,
    /// beside those of the loopback interface.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call the server, such as `https://app.example.com`, besides
    /// its own on a loopback address. Default: none.
    pub allowed_origins: Vec<String>,
    /// The largest request. Default: 4 MiB.
    pub body_bytes: usize,
    /// Sessions at once, of clients that speak a revision with a handshake.
    /// Default: 1,000.
    pub sessions: usize,
    /// The time after which a session ends if its client sends nothing and has no stream open.
    /// Default: 30 minutes.
    pub session_idle: Duration,
    /// Connections at once on which a valid token was shown, where one has to be.
    /// Default: 1,000. Of others there are 512, and the oldest makes room.
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
            session_idle: SESSION_IDLE,
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
        extend_backlog(&listener, BACKLOG)?;
        let listener = TcpListener::from_std(listener)?;
        let connections = Connections::new(options.connections);
        let own = own_origins(&listener.local_addr()?);
        let front = Arc::new(Front::new(self, options, own));
        let graceful = GracefulShutdown::new();
        let _awake = self.stay_awake();
        let _unused_sessions = front.sessions.end_unused();
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
                // Such as too many open files, which may have passed by the next attempt.
                Err(error) => {
                    tracing::warn!("a connection was not taken: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let (front, opened) = (Arc::clone(&front), connections.take());
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
                .serve_connection(TokioIo::new(Watched::new(stream)), service);
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                tokio::select! {
                    // What has arrived is read before it makes room.
                    biased;
                    served = connection => if let Err(error) = served {
                        tracing::debug!("a connection broke off: {error}");
                    },
                    () = ended.ended() => {
                        tracing::debug!("a connection without a token made room for another");
                    }
                }
            });
            // What has arrived on these is read before others may take their places.
            taken += 1;
            if taken.is_multiple_of(AT_ONCE) {
                tokio::task::yield_now().await;
            }
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

/// What stands in front of the protocol.
struct Front {
    server: Server,
    options: HttpOptions,
    /// The hosts that a request may be for.
    hosts: AllowedHosts,
    sessions: Sessions,
    protocol: StreamableHttpService<Handler, LocalSessionManager>,
    /// Ends the streams on which clients wait for news.
    streams: CancellationToken,
    rate: Rate,
    memory: MemoryBudget,
    large_turn: Semaphore,
    /// The requests of sessions that are in flight.
    pending: Pending,
    running: AtomicUsize,
    idle: Notify,
    is_draining: AtomicBool,
}

impl Front {
    fn new(server: &Server, options: HttpOptions, own_origins: Vec<String>) -> Self {
        let streams = CancellationToken::new();
        let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let hosts = loopback.into_iter().chain(options.allowed_hosts.iter().cloned());
        let hosts = AllowedHosts::new(hosts);
        let config = StreamableHttpServerConfig::default()
            // Compared here, whole: the library takes `[localhost]` and any text as a port.
            .disable_allowed_hosts()
            .with_allowed_origins(own_origins.into_iter().chain(options.allowed_origins.clone()))
            .enforce_origin_validation()
            .with_cancellation_token(streams.clone())
            .with_max_request_body_bytes(options.body_bytes);
        let sessions = Sessions::new(options.sessions, options.session_idle);
        let principal = match &options.token {
            Some(token) => token.principal(),
            None => "http".to_owned(),
        };
        let served = server.clone();
        let make = move || Ok(Handler::new(Session::new(served.clone(), &principal)));
        let protocol = StreamableHttpService::new(make, sessions.manager(), config);
        Self {
            server: server.clone(),
            rate: Rate::new(options.rate),
            memory: server.message_memory(),
            large_turn: Semaphore::new(1),
            pending: Pending::default(),
            options,
            hosts,
            sessions,
            protocol,
            streams,
            running: AtomicUsize::new(0),
            idle: Notify::new(),
            is_draining: AtomicBool::new(false),
        }
    }

    async fn serve(&self, mut request: Request<Incoming>, connection: &Connection) -> Reply {
        if request.uri().path() == PATH_WITH_SLASH {
            *request.uri_mut() = Uri::from_static(PATH);
        }
        let is_protocol = request.uri().path() == PATH;
        let page = cross_origin::page(request.headers()).filter(|_| is_protocol);
        let is_preflight = page.is_some() && cross_origin::is_preflight(&request);
        let is_clear = ambiguity(&request).is_none();
        let refused = match page.is_some() && is_clear {
            true => self.forbidden(&request).await,
            false => None,
        };
        let is_page_allowed = is_clear && refused.is_none();
        let mut reply = match refused {
            // A preflight has no token, and is answered before one is looked for.
            Some(refused) if is_preflight => refused,
            None if is_preflight && is_clear => cross_origin::preflight(request.headers()),
            _ => self.answer(request, connection).await,
        };
        if is_protocol {
            reply = as_json_rpc(reply).await;
        }
        if let Some(page) = page.filter(|_| is_page_allowed) {
            cross_origin::allow(reply.headers_mut(), page);
        }
        // What has shown no token does not stay.
        if connection.is_admitted() { reply } else { ending(reply) }
    }

    async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> Reply {
        if matches!(request.uri().path(), "/metrics" | PATH) && self.is_authorised(&request) {
            if !connection.admit() {
                self.server.metrics().refused("connections");
                let wait = Duration::from_secs(1);
                return ending(busy(StatusCode::SERVICE_UNAVAILABLE, "too many connections", wait));
            }
            if let Some(problem) = ambiguity(&request) {
                self.server.metrics().refused("ambiguous");
                let message = format!("the request has {problem}\n");
                return ending(text(StatusCode::BAD_REQUEST, &message));
            }
            if let Some(refused) = self.forbidden(&request).await {
                return refused;
            }
            return match (request.uri().path(), request.method()) {
                (PATH, _) => self.speak(request).await,
                (_, &Method::GET) => self.metrics().await,
                _ => not_found(),
            };
        }
        match (request.uri().path(), request.method()) {
            ("/healthz", &Method::GET) => text(StatusCode::OK, "ok\n"),
            ("/readyz", &Method::GET) => match self.is_draining.load(Ordering::Relaxed) {
                false => text(StatusCode::OK, "ready\n"),
                true => text(StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
            },
            ("/metrics" | PATH, _) => self.unauthorised(request.headers()),
            (path, _) if is_of_oauth(path) => no_oauth(path),
            _ => not_found(),
        }
    }

    fn is_authorised<B>(&self, request: &Request<B>) -> bool {
        let Some(token) = &self.options.token else { return true };
        let shown = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        shown.and_then(bearer).is_some_and(|shown| token.is(shown))
    }

    fn unauthorised(&self, headers: &HeaderMap) -> Reply {
        self.server.metrics().refused("token");
        let what = match headers.get(AUTHORIZATION).map(HeaderValue::as_bytes) {
            None => "no token was sent",
            Some(value) if bearer(value).is_some() => "the token is not that of this server",
            Some(_) => "`Authorization` holds no token in the form `Bearer TOKEN`",
        };
        let message = format!(
            "{what}; send the one that the server printed when it started, or that is in the file \
             of its `--token-file`, as `Authorization: Bearer TOKEN`\n"
        );
        let mut refused = text(StatusCode::UNAUTHORIZED, &message);
        refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        refused
    }

    /// Passes a request on to the protocol.
    async fn speak(&self, mut request: Request<Incoming>) -> Reply {
        if let Err(wait) = self.rate.take() {
            self.server.metrics().refused("rate");
            return busy(StatusCode::TOO_MANY_REQUESTS, "too many requests", wait);
        }
        let Some(mut memory) = self.memory.reserve(MESSAGE_BYTES) else { return self.full() };
        let Some(accepted) = Accepted::of(request.headers()) else { return not_acceptable() };
        Accepted::ask_for_both(request.headers_mut());
        let session = self.sessions.in_use(request.headers(), request.method()).await;
        if request.method() != Method::POST {
            let deletes = request.method() == Method::DELETE;
            let mut reply = self.protocol.handle(request).await;
            // The library says 202, which is for a message that was taken; clients that
            // expect 200 or 204 warn of it.
            if deletes && reply.status() == StatusCode::ACCEPTED {
                *reply.status_mut() = StatusCode::NO_CONTENT;
            }
            return self.counted(reply, PendingRequest::alone(memory), session);
        }
        let _running = Running::new(self);
        let (mut head, body) = request.into_parts();
        let mut body = match tokio::time::timeout(BODY_TIME, self.read(body, &mut memory)).await {
            Ok(Ok(body)) => body,
            Ok(Err(refused)) => return *refused,
            Err(_) => {
                self.server.metrics().refused("body time");
                let limit = BODY_TIME.as_secs();
                let message = format!("a body has {limit}s to arrive\n");
                let reply = ending(text(StatusCode::REQUEST_TIMEOUT, &message));
                return reply;
            }
        };
        if let Some(normalized) = message::normalized(&body) {
            body = normalized.into();
        }
        let cost = message::cost(&body);
        if !message::grow(&mut memory, cost.saturating_sub(MESSAGE_BYTES + body.len() as u64)) {
            self.server.metrics().refused("memory");
            let status = match self.memory.can_hold(cost) {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::PAYLOAD_TOO_LARGE,
            };
            let mut reply = reply_of(status, &message::no_memory(&body, &self.memory));
            reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
            return reply;
        }
        // Large messages are read one at a time and on other threads, so that small ones are
        // answered in between.
        let turn = match cost > message::SMALL_BYTES {
            true => self.large_turn.acquire().await.ok(),
            false => None,
        };
        let line = match &turn {
            None => message::read(&body),
            Some(_) => {
                let body = body.clone();
                on_another_thread(move || message::read(&body)).await
            }
        };
        let message = match line {
            Line::Refused(answer) => {
                return reply_of(StatusCode::BAD_REQUEST, &answer);
            }
            Line::Message(message) => Some(message),
            Line::Empty => None,
        };
        let begins = message.as_deref().is_some_and(is_initialize);
        let id = head.headers.get(SESSION).and_then(|session| session.to_str().ok());
        if let Some(version) = unknown_version(&head.headers)
            && !begins
            && !message.as_deref().is_some_and(names_version)
        {
            let versions = handshake::versions();
            let message = format!(
                "this server does not speak `{}`, which is the `MCP-Protocol-Version` of the \
                 request; it speaks {versions}\n",
                shown(&version)
            );
            return text(StatusCode::BAD_REQUEST, &message);
        }
        if let (Some(message), None) = (message.as_deref(), id)
            && let Some(answer) = handshake::before_session(message, IN_SESSION)
        {
            return reply_of(StatusCode::BAD_REQUEST, &answer);
        }
        if let Some(ClientJsonRpcMessage::Request(request)) = message.as_deref()
            && let Some(digits) = request.request.extensions().get::<Digits>()
        {
            // The library reads the body again, as floats.
            head.extensions.insert(digits.clone());
        }
        let request = match (message.as_deref(), id) {
            (Some(ClientJsonRpcMessage::Request(request)), Some(id)) => {
                match self.pending.add_to(id, &request.id, memory) {
                    Some(request) => request,
                    None => {
                        let answer = message::duplicate(&request.id);
                        return reply_of(StatusCode::BAD_REQUEST, &answer);
                    }
                }
            }
            _ => PendingRequest::alone(memory),
        };
        let client = message.as_deref().and_then(|message| client_of(message, &head));
        if let Some(message) = message.as_deref().filter(|_| begins) {
            // The library reads it again, and keeps what it reads for the session.
            body = serde_json::to_vec(message).unwrap_or_default().into();
        }
        head.extensions.insert(request.clone());
        if begins && !self.sessions.make_room().await {
            self.server.metrics().refused("sessions");
            let wait = Duration::from_secs(30);
            return busy(StatusCode::SERVICE_UNAVAILABLE, "too many sessions", wait);
        }
        let (protocol, body) = (self.protocol.clone(), Full::new(body));
        let handling = async move { protocol.handle(Request::from_parts(head, body)).await };
        let mut handling = Box::pin(handling);
        // The library reads the message again at once.
        let handled = match &turn {
            None => {
                drop(message);
                poll_fn(|context| Poll::Ready(handling.as_mut().poll(context))).await
            }
            Some(_) => {
                let begin = move || {
                    drop(message);
                    // It is polled again below, by the task that is to be woken.
                    let handled = handling.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    (handling, handled)
                };
                let handled;
                (handling, handled) = on_another_thread(begin).await;
                handled
            }
        };
        drop(turn);
        let reply = match handled {
            Poll::Ready(reply) => reply,
            Poll::Pending => handling.await,
        };
        let session = match client {
            Some(client) => self.sessions.begun(reply.headers(), &client).await,
            None => session,
        };
        let reply = match accepted {
            Accepted::Json => accept::in_json(reply).await,
            Accepted::Stream | Accepted::Both => reply,
        };
        self.counted(reply, request, session)
    }

    /// An answer that holds its request, its session and memory until it is written.
    fn counted(
        &self,
        reply: Response<BoxBody<Bytes, Infallible>>,
        request: PendingRequest,
        session: Option<SessionInUse>,
    ) -> Reply {
        reply.map(|body| Counted::new(body, self.memory.clone(), (request, session)).boxed())
    }

    /// Reads a body, which is counted as it arrives.
    async fn read(
        &self,
        mut body: Incoming,
        memory: &mut Reservation,
    ) -> Result<Bytes, Box<Reply>> {
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    return Err(text(StatusCode::BAD_REQUEST, &format!("{error}\n")).into());
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if read.len() + data.len() > self.options.body_bytes {
                let limit = self.options.body_bytes >> 20;
                let message = format!("a request may have {limit} MiB\n");
                return Err(text(StatusCode::PAYLOAD_TOO_LARGE, &message).into());
            }
            if !message::grow(memory, data.len() as u64) {
                return Err(self.full().into());
            }
            read.extend_from_slice(&data);
        }
        Ok(read.freeze())
    }

    /// Refuses a request for which there is no memory now.
    fn full(&self) -> Reply {
        self.server.metrics().refused("memory");
        let what = "busy: other messages have reserved the server's memory";
        ending(busy(StatusCode::SERVICE_UNAVAILABLE, what, Duration::from_secs(1)))
    }

    /// Refuses a request that is for another host, or from a web page of another origin.
    async fn forbidden<B>(&self, request: &Request<B>) -> Option<Reply> {
        let headers = request.headers();
        let refused = |name, what: &str, option: &str| {
            let value = headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
            let value = String::from_utf8_lossy(value);
            let option = format!("{option}={value}");
            let command = shell::command(["kitbag", "serve", "--http", "ADDRESS", &option]);
            let message =
                format!("{what} `{}` is not allowed; `{command}` allows it\n", shown(&value));
            tracing::warn!("refused a request: {}", message.trim_end());
            text(StatusCode::FORBIDDEN, &message)
        };
        match headers.get(HOST) {
            None => return Some(text(StatusCode::BAD_REQUEST, "the request has no `Host`\n")),
            Some(host) if !self.hosts.allows(host.as_bytes()) => {
                return Some(refused(HOST, "the host", "--allow-host"));
            }
            Some(_) => {}
        }
        match self.is_allowed_by_library(request).await {
            true => None,
            false => Some(refused(ORIGIN, "a web page of", "--allow-origin")),
        }
    }

    /// Whether the protocol's library allows the origin of a request, if it has one.
    async fn is_allowed_by_library<B>(&self, request: &Request<B>) -> bool {
        if !request.headers().contains_key(ORIGIN) {
            return true;
        }
        let mut other = Request::new(Empty::<Bytes>::new());
        // A method that it serves with nothing else than an error.
        *other.method_mut() = Method::OPTIONS;
        *other.uri_mut() = request.uri().clone();
        for name in [HOST, ORIGIN] {
            if let Some(value) = request.headers().get(&name) {
                other.headers_mut().insert(name, value.clone());
            }
        }
        self.protocol.handle(other).await.status() == StatusCode::METHOD_NOT_ALLOWED
    }

    async fn metrics(&self) -> Reply {
        let sessions = self.sessions.len().await;
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

/// Does work that would keep other requests waiting.
async fn on_another_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Whether a request says itself which version of the protocol it is in.
fn names_version(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(message) = message else { return false };
    message.request.get_meta().protocol_version().is_some()
}

/// The client that begins a session: its address, its name and its version.
fn client_of(message: &ClientJsonRpcMessage, head: &Parts) -> Option<String> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::InitializeRequest(request) = &request.request else { return None };
    let client = &request.params.client_info;
    Some(session::client(head.extensions.get(), &client.name, &client.version))
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
