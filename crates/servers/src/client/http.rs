//! rmcp's HTTP client over kitbag's connections, with their checks of addresses, proxies and
//! certificates.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

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
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The largest request, in bytes.
const REQUEST_BYTES: u64 = 16 << 20;

/// Sends the requests of one connection.
#[derive(Clone)]
pub(crate) struct BrokerClient {
    requests: Arc<Requests>,
    /// The headers of the configuration.
    headers: HeaderMap,
}

type Answer = Result<StreamableHttpPostResponse, StreamableHttpError<RequestError>>;

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
    pub(crate) fn new(requests: Requests, headers: &[(String, String)]) -> Result<Self, String> {
        let header = |(name, value): &(String, String)| {
            let invalid = || name.clone();
            let name = HeaderName::try_from(&**name).map_err(|_| invalid())?;
            Ok((name, HeaderValue::try_from(&**value).map_err(|_| invalid())?))
        };
        let headers = headers.iter().map(header).collect::<Result<_, String>>()?;
        Ok(Self { requests: Arc::new(requests), headers })
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
        body: Option<Vec<u8>>,
    ) -> Result<Response<IncomingBody>, StreamableHttpError<RequestError>> {
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
        let body: OutgoingBody = Full::new(Bytes::from(body.unwrap_or_default()))
            .map_err(|never| match never {})
            .boxed_unsync();
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.headers_mut() = all;
        let sent = self.requests.send(url, request, RequestTimes::default()).await;
        sent.map_err(StreamableHttpError::Client)
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
            return refused(response, &kind, &message, limits).await;
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
    type Error = RequestError;

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
    ) -> Result<(), StreamableHttpError<RequestError>> {
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
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<RequestError>> {
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
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<RequestError>> {
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
    response: Response<IncomingBody>,
    kind: &str,
    message: &ClientJsonRpcMessage,
    limits: StreamableHttpResponseLimits,
) -> Answer {
    let status = response.status();
    let location = text(response.headers(), &header::LOCATION).map(str::to_owned);
    let challenge = response.headers().contains_key(header::WWW_AUTHENTICATE);
    let (body, _) = read(response.into_body(), limits.max_error_response_size).await;
    let body = body.unwrap_or_default();
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(JsonRpcMessage::Error(error)) if is_media_type(kind, JSON) => Some(error.error),
        _ => None,
    };
    let is_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
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

fn unexpected(status: StatusCode, body: &str) -> StreamableHttpError<RequestError> {
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
    mut body: IncomingBody,
    limit: usize,
) -> (Result<Vec<u8>, StreamableHttpError<RequestError>>, bool) {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return (Err(StreamableHttpError::Client(error)), false),
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
fn events(body: IncomingBody, limit: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut event = EventBytes { limit, bytes: 0, is_line_empty: true };
    let chunks = body.into_data_stream().map(move |chunk| {
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
