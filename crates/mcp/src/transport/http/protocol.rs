//! Protocol requests: from the body of a request to the response of the protocol library.

use std::convert::Infallible;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use kitbag_base::json::Digits;
use kitbag_base::text::shown;
use kitbag_host::Reservation;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, GetMeta};
use tokio::sync::SemaphorePermit;

use super::accept::{self, Accepted, not_acceptable};
use super::connection::MeteredBody;
use super::front::{Front, IDENTITY, RunningRequest};
use super::head::unknown_version;
use super::reply::{Reply, busy, ending, reply_of, text};
use super::sessions::{NotOwner, SESSION, SessionInUse};
use crate::session::{self, Identity, handshake};
use crate::transport::in_flight::InFlightRequest;
use crate::transport::message::{self, Line, MESSAGE_BYTES};

/// Maximum time for receiving the body of a request.
const BODY_TIME: Duration = Duration::from_secs(10);

const IN_SESSION: &str = ", and the `Mcp-Session-Id` of its response with each request";

type LibraryReply = Response<BoxBody<Bytes, Infallible>>;

/// The parsed body of a request.
struct Received<'a> {
    body: Bytes,
    /// `None`: the body is empty.
    message: Option<Box<ClientJsonRpcMessage>>,
    /// Held by a large message until the library has also read it.
    turn: Option<SemaphorePermit<'a>>,
}

impl Front {
    pub(super) async fn speak(&self, mut request: Request<Incoming>, identity: &Identity) -> Reply {
        if let Err(wait) = self.rate.take() {
            self.server.metrics().refused("rate");
            return busy(StatusCode::TOO_MANY_REQUESTS, "too many requests", wait);
        }
        let Some(memory) = self.memory.reserve(MESSAGE_BYTES) else { return self.full() };
        let Some(accepted) = Accepted::of(request.headers()) else { return not_acceptable() };
        Accepted::ask_for_both(request.headers_mut());
        let session = self.sessions.in_use(request.headers(), request.method(), identity).await;
        let session = session.unwrap_or_else(|NotOwner| {
            // As if there were no such session.
            request.headers_mut().insert(SESSION, HeaderValue::from_static("-"));
            None
        });
        if request.method() != Method::POST {
            return self.without_message(request, memory, session, identity).await;
        }
        let _running = RunningRequest::new(self);
        let reply = self.post(request, accepted, memory, session, identity).await;
        reply.unwrap_or_else(|refused| *refused)
    }

    /// Forwards a request without a message: it opens a stream or ends a session.
    async fn without_message(
        &self,
        request: Request<Incoming>,
        memory: Reservation,
        session: Option<SessionInUse>,
        identity: &Identity,
    ) -> Reply {
        let deletes = request.method() == Method::DELETE;
        let mut reply = self.protocol.handle(request).await;
        // The library responds with 202, the status for an accepted message. Clients that expect
        // 200 or 204 log a warning.
        if deletes && reply.status() == StatusCode::ACCEPTED {
            *reply.status_mut() = StatusCode::NO_CONTENT;
        }
        self.counted(reply, InFlightRequest::alone(memory), session, identity)
    }

    /// Forwards a request with a message.
    ///
    /// # Errors
    ///
    /// The response to a refused request.
    async fn post(
        &self,
        request: Request<Incoming>,
        accepted: Accepted,
        mut memory: Reservation,
        session: Option<SessionInUse>,
        identity: &Identity,
    ) -> Result<Reply, Box<Reply>> {
        let (mut head, body) = request.into_parts();
        let body = self.receive(body, &mut memory).await?;
        let received = self.parse(body, &mut memory).await?;
        let message = received.message.as_deref();
        check_envelope(&head.headers, message)?;
        if let Some(ClientJsonRpcMessage::Request(request)) = message
            && let Some(digits) = request.request.extensions().get::<Digits>()
        {
            // The library parses the body again, with numbers as floats.
            head.extensions.insert(digits.clone());
        }
        let request = self.begin(&head.headers, message, memory)?;
        let client = message.and_then(|message| client_of(message, &head, identity));
        head.extensions.insert(request.clone());
        if message.is_some_and(is_initialize) && !self.sessions.make_room().await {
            self.server.metrics().refused("sessions");
            let wait = Duration::from_secs(30);
            return Err(busy(StatusCode::SERVICE_UNAVAILABLE, "too many sessions", wait).into());
        }
        let reply = self.handle(head, received, identity).await;
        let session = match client {
            Some(client) => self.sessions.begun(reply.headers(), &client, identity).await,
            None => session,
        };
        let reply = match accepted {
            Accepted::Json => accept::in_json(reply).await,
            Accepted::Stream | Accepted::Both => reply,
        };
        Ok(self.counted(reply, request, session, identity))
    }

    /// Receives a body within a limited time.
    async fn receive(&self, body: Incoming, memory: &mut Reservation) -> Result<Bytes, Box<Reply>> {
        match tokio::time::timeout(BODY_TIME, self.read(body, memory)).await {
            Ok(read) => read,
            Err(_) => {
                self.server.metrics().refused("body time");
                let limit = BODY_TIME.as_secs();
                let message = format!("the body of a request must arrive within {limit}s\n");
                Err(ending(text(StatusCode::REQUEST_TIMEOUT, &message)).into())
            }
        }
    }

    /// Parses the message in a body. Memory for it is reserved first.
    async fn parse(
        &self,
        mut body: Bytes,
        memory: &mut Reservation,
    ) -> Result<Received<'_>, Box<Reply>> {
        if let Some(normalized) = message::normalized(&body) {
            body = normalized.into();
        }
        let cost = message::cost(&body);
        if !message::grow(memory, cost.saturating_sub(MESSAGE_BYTES + body.len() as u64)) {
            self.server.metrics().refused("memory");
            let status = match self.memory.can_hold(cost) {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::PAYLOAD_TOO_LARGE,
            };
            let mut reply = reply_of(status, &message::no_memory(&body, &self.memory));
            reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
            return Err(reply.into());
        }
        // Large messages are parsed one at a time and on other threads, so that small messages are
        // not delayed.
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
        match line {
            Line::Refused(answer) => Err(reply_of(StatusCode::BAD_REQUEST, &answer).into()),
            Line::Message(message) => Ok(Received { body, message: Some(message), turn }),
            Line::Empty => Ok(Received { body, message: None, turn }),
        }
    }

    /// Marks a request as in flight until the result is dropped.
    fn begin(
        &self,
        headers: &HeaderMap,
        message: Option<&ClientJsonRpcMessage>,
        memory: Reservation,
    ) -> Result<InFlightRequest, Box<Reply>> {
        let (Some(ClientJsonRpcMessage::Request(request)), Some(session)) =
            (message, session_of(headers))
        else {
            return Ok(InFlightRequest::alone(memory));
        };
        let request_or_duplicate = self.in_flight.add_to(session, &request.id, memory);
        request_or_duplicate.ok_or_else(|| {
            reply_of(StatusCode::BAD_REQUEST, &message::duplicate(&request.id)).into()
        })
    }

    async fn handle(
        &self,
        head: Parts,
        received: Received<'_>,
        identity: &Identity,
    ) -> LibraryReply {
        let Received { mut body, message, turn } = received;
        if let Some(message) = message.as_deref().filter(|message| is_initialize(message)) {
            // The library parses the body again, and keeps the result for the session.
            body = serde_json::to_vec(message).unwrap_or_default().into();
        }
        let protocol = self.protocol.clone();
        let handling =
            async move { protocol.handle(Request::from_parts(head, Full::new(body))).await };
        let mut handling = Box::pin(IDENTITY.scope(identity.clone(), handling));
        // The library parses the message again at once.
        let handled = match &turn {
            None => {
                drop(message);
                poll_fn(|context| Poll::Ready(handling.as_mut().poll(context))).await
            }
            Some(_) => {
                let begin = move || {
                    drop(message);
                    // Polled again below by the task that must be woken.
                    let handled = handling.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    (handling, handled)
                };
                let handled;
                (handling, handled) = on_another_thread(begin).await;
                handled
            }
        };
        drop(turn);
        match handled {
            Poll::Ready(reply) => reply,
            Poll::Pending => handling.await,
        }
    }

    /// Returns a response that holds its request, session and memory until it is written. The
    /// response ends if the token of its person is revoked.
    fn counted(
        &self,
        reply: LibraryReply,
        request: InFlightRequest,
        session: Option<SessionInUse>,
        identity: &Identity,
    ) -> Reply {
        let held = (request, session);
        let body = |body| MeteredBody::new(body, self.memory.clone(), held, identity.revocation());
        reply.map(|it| body(it).boxed())
    }

    /// Receives a body and counts its bytes.
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
                let message = format!("a request may have at most at most {limit} MiB\n");
                return Err(text(StatusCode::PAYLOAD_TOO_LARGE, &message).into());
            }
            if !message::grow(memory, data.len() as u64) {
                return Err(self.full().into());
            }
            read.extend_from_slice(&data);
        }
        Ok(read.freeze())
    }

    /// Refuses a request because no memory is available now.
    fn full(&self) -> Reply {
        self.server.metrics().refused("memory");
        let what = "busy: other messages have reserved the server's memory";
        ending(busy(StatusCode::SERVICE_UNAVAILABLE, what, Duration::from_secs(1)))
    }
}

/// Refuses a request with an unsupported protocol version, or one that must have a session.
fn check_envelope(
    headers: &HeaderMap,
    message: Option<&ClientJsonRpcMessage>,
) -> Result<(), Box<Reply>> {
    if let Some(version) = unknown_version(headers)
        && !message.is_some_and(|message| is_initialize(message) || names_version(message))
    {
        let versions = handshake::versions();
        let message = format!(
            "this server does not support `{}`, the `MCP-Protocol-Version` of the request; it \
             supports {versions}\n",
            shown(&version)
        );
        return Err(text(StatusCode::BAD_REQUEST, &message).into());
    }
    if let (Some(message), None) = (message, session_of(headers))
        && let Some(answer) = handshake::before_session(message, IN_SESSION)
    {
        return Err(reply_of(StatusCode::BAD_REQUEST, &answer).into());
    }
    Ok(())
}

fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

/// Runs work on another thread that would delay other requests.
async fn on_another_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Returns whether a request contains its own protocol version.
fn names_version(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(message) = message else { return false };
    message.request.get_meta().protocol_version().is_some()
}

/// Returns the client that starts a session, by the name of its share.
fn client_of(message: &ClientJsonRpcMessage, head: &Parts, identity: &Identity) -> Option<String> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::InitializeRequest(request) = &request.request else { return None };
    let client = &request.params.client_info;
    Some(session::client(identity, head.extensions.get(), &client.name, &client.version))
}

fn is_initialize(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}
