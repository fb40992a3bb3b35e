//! rmcp's HTTP client over kitbag's connections, with their checks of addresses, proxies and
//! certificates.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use ipnet::IpNet;
use kitbag_base::ByteSize;
use kitbag_http::{IncomingBody, OutgoingBody, RequestError, RequestTimes, Requests};
use kitbag_policy::http::{Headers, Host, HttpGrant, HttpRefusal, HttpRequest, Methods};
use kitbag_policy::server::RemoteServer;
use kitbag_policy::server::ServerName;
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};

use crate::sign_in::{Access, Challenge, required};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The largest request, in bytes.
const REQUEST_BYTES: u64 = 16 << 20;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A person has to sign in. A verb phrase with the command.
    #[error("{0}")]
    SignIn(String),
}

/// Sends the requests of one connection.
#[derive(Clone)]
pub(crate) struct BrokerClient {
    server: ServerName,
    make: Arc<MakeRequests>,
    /// The requests with the last access token.
    current: Arc<Mutex<Option<TokenRequests>>>,
    access: Option<Access>,
    /// The headers of the configuration.
    headers: HeaderMap,
}

/// An access token, and the requests with it.
type TokenRequests = (Option<String>, Arc<Requests>);

/// Creates the requests with an access token.
pub(crate) type MakeRequests = dyn Fn(Option<&str>) -> Result<Requests, String> + Send + Sync;

type Answer = Result<StreamableHttpPostResponse, StreamableHttpError<ClientError>>;

/// Returns the grant for the requests to a server. A response may be as long as its stream; its
/// messages are limited instead.
///
/// # Errors
///
/// [`HttpRefusal`] for a URL that no request may have.
pub(crate) fn grant(server: &RemoteServer) -> Result<HttpGrant, HttpRefusal> {
    let request = HttpRequest::new("POST", &server.url)?;
    let methods = Methods::new(["DELETE", "GET", "POST"]).expect("they are methods");
    // A person wrote the address, so it may be one of this machine or network. A name may have a
    // private address only within `addresses`, since its owner chooses what it resolves to.
    let named: Vec<IpNet> = match request.host() {
        Host::Address(address) => vec![IpNet::from(*address)],
        host if host.is_localhost() => {
            ["127.0.0.0/8", "::1/128"].iter().filter_map(|net| net.parse().ok()).collect()
        }
        Host::Name(_) => Vec::new(),
    };
    let addresses = named.into_iter().chain(server.addresses.iter().copied()).collect();
    Ok(HttpGrant {
        methods,
        addresses,
        headers: Headers::Any,
        max_request: ByteSize::bytes(REQUEST_BYTES),
        max_response: ByteSize::bytes(u64::MAX >> 1),
        ..HttpGrant::allowing(&request)
    })
}

impl BrokerClient {
    /// # Errors
    ///
    /// The name of a header that is not valid.
    pub(crate) fn new(
        server: &ServerName,
        make: Box<MakeRequests>,
        access: Option<Access>,
        headers: &[(String, String)],
    ) -> Result<Self, String> {
        let header = |(name, value): &(String, String)| {
            let invalid = || name.clone();
            let name = HeaderName::try_from(&**name).map_err(|_| invalid())?;
            Ok((name, HeaderValue::try_from(&**value).map_err(|_| invalid())?))
        };
        let headers = headers.iter().map(header).collect::<Result<_, String>>()?;
        let (server, make) = (server.clone(), make.into());
        Ok(Self { server, make, current: Arc::default(), access, headers })
    }

    /// Returns the requests with the current access token. `rejected` is a token that the server
    /// does not accept.
    async fn requests(
        &self,
        rejected: Option<&str>,
    ) -> Result<(Option<String>, Arc<Requests>), StreamableHttpError<ClientError>> {
        let token = match &self.access {
            Some(access) => access.token(rejected).await.map_err(plain)?,
            None => None,
        };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = current.as_ref().filter(|current| current.0 == token) {
            return Ok(current.clone());
        }
        let requests = Arc::new((self.make)(token.as_deref()).map_err(plain)?);
        *current = Some((token.clone(), Arc::clone(&requests)));
        Ok((token, requests))
    }

    /// Sends a request. A rejected access token is refreshed once.
    async fn send(
        &self,
        method: Method,
        url: &str,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
        body: Option<Vec<u8>>,
    ) -> Result<Response<Body>, StreamableHttpError<ClientError>> {
        let mut all = self.headers.clone();
        all.extend(headers);
        let accepted = if body.is_some() { "application/json, text/event-stream" } else { EVENTS };
        all.insert(header::ACCEPT, HeaderValue::from_static(accepted));
        if let Some(session) = session {
            let session = HeaderValue::try_from(session).map_err(|_| {
                StreamableHttpError::UnexpectedServerResponse("the session id is invalid".into())
            })?;
            all.insert(SESSION, session);
        }
        if body.is_some() {
            all.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        let body = Bytes::from(body.unwrap_or_default());
        let (token, requests) = self.requests(None).await?;
        let response = exchange(&requests, &method, url, &all, &body).await?;
        if response.status() != StatusCode::UNAUTHORIZED || token.is_none() {
            return Ok(response);
        }
        drop(response);
        let (token, requests) = self.requests(token.as_deref()).await?;
        match (token, &self.access) {
            (None, Some(access)) => Err(sign_in(access.required())),
            _ => exchange(&requests, &method, url, &all, &body).await,
        }
    }

    async fn post(
        &self,
        url: &str,
        message: ClientJsonRpcMessage,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Answer {
        let body = serde_json::to_vec(&message)?;
        let response = self.send(Method::POST, url, session, headers, Some(body)).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let has_answer = matches!(message, JsonRpcMessage::Request(_));
        let session = text(response.headers(), &SESSION).map(str::to_owned);
        let kind = text(response.headers(), &header::CONTENT_TYPE).unwrap_or_default().to_owned();
        if !status.is_success() {
            return refused(&self.server, self.access.is_some(), response, &kind, &message, limits)
                .await;
        }
        if !has_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if is_media_type(&kind, EVENTS) {
            let events = events(response.into_body(), limits.max_sse_event_size);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if is_media_type(&kind, JSON) {
            let (body, is_whole) = read(response.into_body(), limits.max_json_response_size).await;
            let body = body?;
            if !is_whole {
                let max_size = limits.max_json_response_size;
                return Err(StreamableHttpError::ResponseBodyTooLarge { max_size });
            }
            let message = serde_json::from_slice(&body)?;
            return Ok(StreamableHttpPostResponse::Json(message, session));
        }
        Err(StreamableHttpError::UnexpectedContentType(Some(kind)))
    }
}

impl StreamableHttpClient for BrokerClient {
    type Error = ClientError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer {
        let limits = StreamableHttpResponseLimits::default();
        self.post(&uri, message, session_id.as_deref(), custom_headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Answer {
        self.post(&uri, message, session_id.as_deref(), custom_headers, limits).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<ClientError>> {
        let response = self.send(Method::DELETE, &uri, Some(&session_id), custom_headers, None);
        match response.await?.status() {
            status if status.is_success() => Ok(()),
            StatusCode::METHOD_NOT_ALLOWED => {
                Err(StreamableHttpError::ServerDoesNotSupportDeleteSession)
            }
            status => Err(unexpected(status, "")),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<ClientError>> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            limit,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<ClientError>> {
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::try_from(id).ok()) {
            custom_headers.insert(LAST_EVENT, id);
        }
        let response = self.send(Method::GET, &uri, session_id.as_deref(), custom_headers, None);
        let response = response.await?;
        let kind = text(response.headers(), &header::CONTENT_TYPE).unwrap_or_default().to_owned();
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(unexpected(status, "")),
            _ if is_media_type(&kind, EVENTS) => {
                Ok(events(response.into_body(), max_sse_event_size))
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(Some(kind))),
        }
    }
}

/// Reads an answer with the status of an error. A JSON-RPC error in it is the answer. A server
/// without `server/discover` may refuse it in any form.
async fn refused(
    server: &ServerName,
    has_sign_in: bool,
    response: Response<Body>,
    kind: &str,
    message: &ClientJsonRpcMessage,
    limits: StreamableHttpResponseLimits,
) -> Answer {
    let status = response.status();
    let location = text(response.headers(), &header::LOCATION).map(str::to_owned);
    let challenge = response.headers().contains_key(header::WWW_AUTHENTICATE);
    let bearer = Challenge::of(response.headers()).filter(|_| has_sign_in);
    let (body, _) = read(response.into_body(), limits.max_error_response_size).await;
    let body = body.unwrap_or_default();
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(JsonRpcMessage::Error(error)) if is_media_type(kind, JSON) => Some(error.error),
        _ => None,
    };
    let is_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if let Some(bearer) = bearer {
        let is_scope = bearer.error.as_deref() == Some("insufficient_scope");
        if status == StatusCode::UNAUTHORIZED {
            return Err(sign_in(required(server, &[])));
        }
        if status == StatusCode::FORBIDDEN && is_scope {
            return Err(sign_in(required(server, &bearer.scopes)));
        }
    }
    if is_access || challenge {
        let reason = format!("HTTP {status}: the server requires other credentials");
        return Err(StreamableHttpError::UnexpectedServerResponse(reason.into()));
    }
    if let JsonRpcMessage::Request(request) = message {
        let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let unknown = || ErrorData::invalid_request(format!("HTTP {status}"), None);
        let error = match error {
            None if is_probe && status.is_client_error() => Some(unknown()),
            error => error,
        };
        if let Some(error) = error {
            let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
    }
    if let Some(location) = location.filter(|_| status.is_redirection()) {
        let reason = format!("HTTP {status}: the endpoint is at `{location}`");
        return Err(StreamableHttpError::UnexpectedServerResponse(reason.into()));
    }
    Err(unexpected(status, &String::from_utf8_lossy(&body)))
}

/// The body of a response. The requests that it is one of end with it.
struct Body(IncomingBody, Arc<Requests>);

/// Sends one request.
async fn exchange(
    requests: &Arc<Requests>,
    method: &Method,
    url: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Body>, StreamableHttpError<ClientError>> {
    let body: OutgoingBody = Full::new(body.clone()).map_err(|never| match never {}).boxed_unsync();
    let mut request = Request::new(body);
    *request.method_mut() = method.clone();
    *request.headers_mut() = headers.clone();
    let sent = requests.send(url, request, RequestTimes::default()).await;
    let response = sent.map_err(|error| StreamableHttpError::Client(error.into()))?;
    Ok(response.map(|body| Body(body, Arc::clone(requests))))
}

fn sign_in(reason: String) -> StreamableHttpError<ClientError> {
    StreamableHttpError::Client(ClientError::SignIn(reason))
}

fn plain(reason: String) -> StreamableHttpError<ClientError> {
    StreamableHttpError::UnexpectedServerResponse(reason.into())
}

fn unexpected(status: StatusCode, body: &str) -> StreamableHttpError<ClientError> {
    const SHOWN: usize = 300;
    let body = &body[..body.floor_char_boundary(SHOWN)];
    let text =
        if body.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {body}") };
    StreamableHttpError::UnexpectedServerResponse(text.into())
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn is_media_type(kind: &str, expected: &str) -> bool {
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(expected)
}

/// Reads at most `limit` bytes of a body. The second value is false if the body is longer.
async fn read(
    mut body: Body,
    limit: usize,
) -> (Result<Vec<u8>, StreamableHttpError<ClientError>>, bool) {
    let mut bytes = Vec::new();
    while let Some(frame) = body.0.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return (Err(StreamableHttpError::Client(error.into())), false),
        };
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limit - bytes.len() {
            bytes.extend_from_slice(&data[..limit - bytes.len()]);
            return (Ok(bytes), false);
        }
        bytes.extend_from_slice(&data);
    }
    (Ok(bytes), true)
}

/// Reads the events of a body. A longer event than `limit` ends the stream with an error.
fn events(Body(body, requests): Body, limit: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut event = EventBytes { limit, bytes: 0, is_line_empty: true };
    let chunks = body.into_data_stream().map(move |chunk| {
        let _ = &requests;
        let chunk = chunk.map_err(io::Error::other)?;
        match event.count(&chunk) {
            true => Ok(chunk),
            false => Err(io::Error::other(format!("an event has more than {limit} bytes"))),
        }
    });
    SseStream::from_bytes_stream(chunks).boxed()
}

/// Counts the bytes of one event, which ends with an empty line.
struct EventBytes {
    limit: usize,
    bytes: usize,
    is_line_empty: bool,
}

impl EventBytes {
    /// Counts the bytes of a chunk. Returns false if an event is too long.
    fn count(&mut self, chunk: &[u8]) -> bool {
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.bytes += line.len();
            if self.bytes > self.limit {
                return false;
            }
            let is_end = line.ends_with(b"\n");
            let is_empty = self.is_line_empty && line.iter().all(|byte| b"\r\n".contains(byte));
            match is_end {
                true if is_empty => (self.bytes, self.is_line_empty) = (0, true),
                true => self.is_line_empty = true,
                false => self.is_line_empty = is_empty,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_events_fail_across_chunks() {
        let mut event = EventBytes { limit: 16, bytes: 0, is_line_empty: true };
        assert!(event.count(b"data: abc\n\ndata: abc\r\n"));
        assert!(event.count(b"\r") && event.count(b"\ndata: 0123"));
        assert!(event.count(b"456789") && !event.count(b"a"));
    }

    #[test]
    fn media_types_have_parameters_and_any_case() {
        assert!(is_media_type("Application/JSON; charset=utf-8", JSON));
        assert!(!is_media_type("application/jsonl", JSON));
    }

    #[test]
    fn local_endpoints_have_local_addresses() {
        let addresses = |url: &str| {
            let server = RemoteServer {
                url: url.into(),
                secret: None,
                headers: Vec::new(),
                addresses: Vec::new(),
            };
            grant(&server).unwrap().addresses.len()
        };
        assert_eq!(addresses("http://127.0.0.1:1/mcp"), 1);
        assert_eq!(addresses("http://localhost:1/mcp"), 2);
        assert_eq!(addresses("https://mcp.example.com/mcp"), 0);
    }
}
