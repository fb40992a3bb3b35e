//! Responses of the server itself: refusals, and errors in the form that the client expects.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{ErrorCode, ServerJsonRpcMessage};
use serde::Serialize;
use serde_json::json;

use crate::transport::message::BUSY;

pub(super) type Reply = Response<BoxBody<Bytes, io::Error>>;

/// Converts the body of an error to a JSON-RPC error, which clients of the protocol can read.
pub(super) async fn as_json_rpc(reply: Reply) -> Reply {
    let status = reply.status();
    let kind = reply.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_json = kind.is_some_and(|kind| kind.starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return reply;
    }
    let (mut head, body) = reply.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message = String::from_utf8_lossy(&body);
    let code = if status.is_server_error() { BUSY } else { ErrorCode::INVALID_REQUEST.0 };
    let error = json!({ "code": code, "message": message.trim_end() });
    let message = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, boxed(Full::new(message.into())))
}

/// Returns whether clients request this path for OAuth discovery (RFC 8414, 9728, 7591, 6749).
pub(super) fn is_of_oauth(path: &str) -> bool {
    path.starts_with("/.well-known/") || matches!(path, "/register" | "/authorize" | "/token")
}

/// Returns the response to OAuth discovery, in the form of an OAuth error (RFC 6749, 5.2).
pub(super) fn no_oauth(path: &str) -> Reply {
    let (status, error) = match path.starts_with("/.well-known/") {
        true => (StatusCode::NOT_FOUND, "not_found"),
        false => (StatusCode::BAD_REQUEST, "invalid_request"),
    };
    let description = "this server has no OAuth: send your token as `Authorization: Bearer TOKEN`";
    in_json(status, &json!({ "error": error, "error_description": description }))
}

pub(super) fn boxed<B>(body: B) -> BoxBody<Bytes, io::Error>
where
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send + Sync + 'static,
{
    body.map_err(|never| match never {}).boxed()
}

/// Returns a response after which the connection closes.
pub(super) fn ending(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

pub(super) fn not_found() -> Reply {
    text(StatusCode::NOT_FOUND, "not found; the MCP endpoint is /mcp\n")
}

pub(super) fn text(status: StatusCode, text: &str) -> Reply {
    let mut reply = Response::new(boxed(Full::new(Bytes::from(text.to_owned()))));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

pub(super) fn reply_of(status: StatusCode, message: &ServerJsonRpcMessage) -> Reply {
    in_json(status, message)
}

fn in_json(status: StatusCode, body: &impl Serialize) -> Reply {
    let mut reply = text(status, &serde_json::to_string(body).unwrap_or_default());
    let kind = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

pub(super) fn busy(status: StatusCode, what: &str, wait: Duration) -> Reply {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let mut reply = text(status, &format!("{what}; try again in {seconds}s\n"));
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    reply
}
