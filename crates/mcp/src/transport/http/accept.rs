//! The `Accept` header: a client may accept JSON, an event stream, or both.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ServerJsonRpcMessage};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::reply::{Reply, text};

const JSON: &str = "application/json";
const STREAM: &str = "text/event-stream";

/// The content types that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepted {
    Json,
    Stream,
    Both,
}

impl Accepted {
    /// Reads the `Accept` headers of a request. Without a header both types are accepted. `None` if
    /// neither type is accepted.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(ACCEPT).iter().peekable();
        if values.peek().is_none() {
            return Some(Self::Both);
        }
        let ranges = values.filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
        let (mut json, mut stream) = (false, false);
        for range in ranges {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let is_refused = parts.any(|part| {
                let quality = part.strip_prefix("q=").or(part.strip_prefix("Q="));
                quality.and_then(|quality| quality.parse::<f32>().ok()).is_some_and(|q| q == 0.0)
            });
            let is = |names: [&str; 3]| names.iter().any(|it| it.eq_ignore_ascii_case(name));
            json |= !is_refused && is([JSON, "application/*", "*/*"]);
            stream |= !is_refused && is([STREAM, "text/*", "*/*"]);
        }
        match (json, stream) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Json),
            (false, true) => Some(Self::Stream),
            (false, false) => None,
        }
    }

    /// Sets both types in the headers, which the protocol library requires.
    pub(super) fn ask_for_both(headers: &mut HeaderMap) {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    }
}

/// Refuses a request whose client accepts neither type.
pub(super) fn not_acceptable() -> Reply {
    let message = format!("`Accept` allows neither `{JSON}` nor `{STREAM}`; send one of them\n");
    text(StatusCode::NOT_ACCEPTABLE, &message)
}

/// Turns the stream of an answer into its last message. Notifications on the way are dropped. A
/// question ends the request with an error, since the client cannot receive it.
pub(super) async fn in_json(
    reply: Response<BoxBody<Bytes, Infallible>>,
) -> Response<BoxBody<Bytes, Infallible>> {
    let kind = reply.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(STREAM.as_bytes())) {
        return reply;
    }
    let (mut head, body) = reply.into_parts();
    let message = last_message(body).await;
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Full::new(message.into()).boxed())
}

/// Returns the last message of an event stream as JSON.
async fn last_message(mut body: BoxBody<Bytes, Infallible>) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        text.extend_from_slice(&data);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            // The library writes each message as one `data` line.
            let Some(message) = line.trim_ascii().strip_prefix(b"data:") else { continue };
            match kind(message) {
                Kind::Answer => return message.trim_ascii().to_vec(),
                Kind::Question => {
                    return failed("a question, which a JSON response cannot contain");
                }
                Kind::Other => {}
            }
        }
    }
    failed("no answer")
}

enum Kind {
    Answer,
    Question,
    Other,
}

fn kind(message: &[u8]) -> Kind {
    #[derive(Deserialize)]
    struct Envelope {
        id: Option<IgnoredAny>,
        method: Option<IgnoredAny>,
    }
    match serde_json::from_slice(message) {
        Ok(Envelope { method: None, .. }) => Kind::Answer,
        Ok(Envelope { id: Some(_), .. }) => Kind::Question,
        Ok(_) | Err(_) => Kind::Other,
    }
}

fn failed(got: &str) -> Vec<u8> {
    let message = format!("the call ended with {got}; also accept `{STREAM}`");
    let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, message, None);
    serde_json::to_vec(&ServerJsonRpcMessage::error(error, None)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_header_is_parsed() {
        let check = |values: &[&str], expected: Option<Accepted>| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT, value.parse().unwrap());
            }
            assert_eq!(Accepted::of(&headers), expected, "{values:?}");
        };
        check(&[], Some(Accepted::Both));
        check(&["*/*"], Some(Accepted::Both));
        check(&["application/json, text/event-stream"], Some(Accepted::Both));
        check(&["application/json", "text/event-stream"], Some(Accepted::Both));
        check(&["Application/JSON; charset=utf-8"], Some(Accepted::Json));
        check(&["application/*;q=0.8"], Some(Accepted::Json));
        check(&["text/event-stream"], Some(Accepted::Stream));
        check(&["text/*"], Some(Accepted::Stream));
        check(&["application/json, text/event-stream;q=0"], Some(Accepted::Json));
        check(&["text/html, image/png"], None);
        check(&["application/json;q=0.0"], None);
    }
}
