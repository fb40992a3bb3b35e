//! Handles HTTP requests before they reach the protocol.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use kitbag_base::shell;
use kitbag_base::text::shown;
use kitbag_host::MemoryBudget;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::allowed_hosts::AllowedHosts;
use super::connection::Connection;
use super::cross_origin;
use super::head::{ambiguity, bearer};
use super::health;
use super::options::{Access, HttpOptions, PATH};
use super::rate::RequestRate;
use super::reply::{Reply, as_json_rpc, busy, ending, is_of_oauth, no_oauth, not_found, text};
use super::sessions::Sessions;
use super::token::Token;
use crate::server::Server;
use crate::server::handler::Handler;
use crate::session::{Identity, Session};
use crate::transport::in_flight::InFlight;

/// The path with a trailing slash, which some clients send.
const PATH_WITH_SLASH: &str = "/mcp/";

/// Time that running calls have when the server shuts down.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// The checks and the state that precede the protocol.
pub(super) struct Front {
    pub(super) server: Server,
    pub(super) options: HttpOptions,
    pub(super) hosts: AllowedHosts,
    pub(super) sessions: Sessions,
    pub(super) protocol: StreamableHttpService<Handler, LocalSessionManager>,
    /// Ends the streams on which clients wait for notifications.
    pub(super) streams: CancellationToken,
    pub(super) rate: RequestRate,
    pub(super) memory: MemoryBudget,
    pub(super) large_turn: Semaphore,
    pub(super) in_flight: InFlight,
    pub(super) running: AtomicUsize,
    pub(super) idle: Notify,
    pub(super) is_draining: AtomicBool,
    /// The name of the clients without a token of their own.
    shared: Arc<str>,
}

tokio::task_local! {
    /// The identity behind the request that the protocol library handles. The library creates the
    /// handler of a session or of a stateless request while it handles the first request.
    pub(super) static IDENTITY: Identity;
}

impl Front {
    pub(super) fn new(server: &Server, options: HttpOptions, own_origins: Vec<String>) -> Self {
        let streams = CancellationToken::new();
        let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let hosts = loopback.into_iter().chain(options.allowed_hosts.iter().cloned());
        let hosts = AllowedHosts::new(hosts);
        let config = StreamableHttpServerConfig::default()
            // The host is compared here as a whole: the library accepts `[localhost]`, and any text
            // as a port.
            .disable_allowed_hosts()
            .with_allowed_origins(own_origins.into_iter().chain(options.allowed_origins.clone()))
            .enforce_origin_validation()
            .with_cancellation_token(streams.clone())
            .with_max_request_body_bytes(options.body_bytes);
        let sessions = Sessions::new(options.sessions, options.session_idle);
        let shared = match &options.access {
            Access::Token(token) => token.principal(),
            Access::Anyone | Access::People => "http".to_owned(),
        };
        let served = server.clone();
        let make = move || {
            let identity = IDENTITY.try_with(Clone::clone).map_err(io::Error::other)?;
            Ok(Handler::new(Session::new(served.clone(), identity)))
        };
        let protocol = StreamableHttpService::new(make, sessions.manager(), config);
        Self {
            server: server.clone(),
            rate: RequestRate::new(options.rate),
            memory: server.message_memory(),
            large_turn: Semaphore::new(1),
            in_flight: InFlight::default(),
            shared: shared.into(),
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

    pub(super) async fn serve(
        &self,
        mut request: Request<Incoming>,
        connection: &Connection,
    ) -> Reply {
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
            // A preflight has no token, so it is answered before authentication.
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
        // A connection without a valid token is closed.
        if connection.is_admitted() { reply } else { ending(reply) }
    }

    async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> Reply {
        let is_protected = matches!(request.uri().path(), "/metrics" | PATH);
        if let Some(identity) = self.identify(&request).filter(|_| is_protected) {
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
                (PATH, _) => self.speak_while_valid(request, identity).await,
                (_, &Method::GET) => self.metrics().await,
                _ => not_found(),
            };
        }
        match (request.uri().path(), request.method()) {
            (health::PATH, &Method::GET) => text(StatusCode::OK, health::BODY),
            ("/readyz", &Method::GET) => match self.is_draining.load(Ordering::Relaxed) {
                false => text(StatusCode::OK, "ready\n"),
                true => text(StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
            },
            ("/metrics" | PATH, _) => self.unauthorised(request.headers()),
            (path, _) if is_of_oauth(path) => no_oauth(path),
            _ => not_found(),
        }
    }

    /// Returns the identity behind a request. `None` if the request is not authorised.
    fn identify<B>(&self, request: &Request<B>) -> Option<Identity> {
        let shown = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown.and_then(bearer).map(Token::shown);
        let person = |token: &Token| self.server.generation().person(|sha256| token.is(sha256));
        if let Some(person) = shown.as_ref().and_then(person) {
            return Some(Identity::Person(person));
        }
        let is_accepted = match &self.options.access {
            Access::Anyone => true,
            Access::Token(token) => shown.is_some_and(|shown| shown.is(&token.sha256())),
            Access::People => false,
        };
        is_accepted.then(|| Identity::Shared(Arc::clone(&self.shared)))
    }

    /// Handles a request, until the token of its person is revoked.
    async fn speak_while_valid(&self, request: Request<Incoming>, identity: Identity) -> Reply {
        let headers = request.headers().clone();
        tokio::select! {
            biased;
            () = identity.revoked() => self.unauthorised(&headers),
            reply = self.speak(request, &identity) => reply,
        }
    }

    fn unauthorised(&self, headers: &HeaderMap) -> Reply {
        self.server.metrics().refused("token");
        let what = match headers.get(AUTHORIZATION).map(HeaderValue::as_bytes) {
            None => "no token was sent",
            Some(value) if bearer(value).is_some() => "the token is wrong",
            Some(_) => "`Authorization` does not have the form `Bearer TOKEN`",
        };
        let message = format!(
            "{what}; send {} as `Authorization: Bearer TOKEN`\n",
            match self.options.access {
                Access::People => "the token that `kitbag token add` printed for you",
                Access::Anyone | Access::Token(_) => {
                    "the token that the server printed at its start, or that is in its \
                     `--token-file`, or your own,"
                }
            }
        );
        let mut refused = text(StatusCode::UNAUTHORIZED, &message);
        refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        refused
    }

    /// Refuses requests for another host, or from a web page of another origin.
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

    /// Returns whether the protocol library allows the origin of a request, if it has one.
    async fn is_allowed_by_library<B>(&self, request: &Request<B>) -> bool {
        if !request.headers().contains_key(ORIGIN) {
            return true;
        }
        let mut other = Request::new(Empty::<Bytes>::new());
        // A method to which the library always responds with an error.
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

    /// Waits a limited time for running requests.
    pub(super) async fn drain(&self) {
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
                "calls are still running {}s after the server began to stop; they are cancelled",
                DRAIN_TIME.as_secs()
            );
        }
    }
}

pub(super) struct RunningRequest<'a>(&'a Front);

impl<'a> RunningRequest<'a> {
    pub(super) fn new(front: &'a Front) -> Self {
        front.running.fetch_add(1, Ordering::Relaxed);
        Self(front)
    }
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
