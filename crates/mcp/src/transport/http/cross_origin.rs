//! Cross-origin requests of web pages: CORS, as the Fetch standard defines it.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};

use super::reply::{Reply, text};

const METHODS: &str = "GET, POST, DELETE";

/// The allowed request headers for a preflight that names none.
const SENT: &str = "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, \
                    Mcp-Method, Mcp-Name, Mcp-Session-Id";

/// The response headers that a page may read.
const READ: &str = "Mcp-Session-Id, Retry-After, WWW-Authenticate";

/// Time in seconds for which a browser may cache a preflight response: two hours, the maximum of
/// Chromium.
const MAX_AGE: &str = "7200";

/// Header by which a page from the Internet requests access to this network (Private Network
/// Access).
const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// Returns the origin of the web page that sent a request. Other clients do not send an origin.
pub(super) fn page(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(ORIGIN).cloned()
}

/// Returns whether a request is a preflight: a browser asks whether it may send a page's request.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the response to a preflight of an allowed origin.
pub(super) fn preflight(asked: &HeaderMap) -> Reply {
    let mut reply = text(StatusCode::NO_CONTENT, "");
    let headers = reply.headers_mut();
    headers.clear();
    let sent = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let sent = sent.unwrap_or(HeaderValue::from_static(SENT));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, sent);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    if asked.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    reply
}

/// Allows a page of this origin to read a response.
pub(super) fn allow(headers: &mut HeaderMap, page: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
    headers.append(VARY, HeaderValue::from_static("Origin"));
}
