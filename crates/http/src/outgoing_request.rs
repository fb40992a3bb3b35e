//! Requests that a tool sends.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};

use crate::error::BoxError;
use crate::headers;

/// The body of a tool's request.
pub type OutgoingBody = UnsyncBoxBody<Bytes, BoxError>;

/// A tool's request.
pub(crate) struct OutgoingRequest {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// `None` after the body was sent.
    body: Option<OutgoingBody>,
    /// True if the body is empty, so that it can be sent again.
    pub(crate) is_empty: bool,
}

impl OutgoingRequest {
    pub(crate) fn new(method: Method, mut headers: HeaderMap, body: OutgoingBody) -> Self {
        let is_empty = body.is_end_stream();
        // With a wrong length, the server would read the next request as the body of this one.
        if is_empty && headers.contains_key(header::CONTENT_LENGTH) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Self { method, headers, body: Some(body), is_empty }
    }

    /// Removes the body.
    pub(crate) fn drop_body(&mut self) {
        (self.body, self.is_empty) = (None, true);
        headers::OF_BODY.iter().for_each(|name| drop(self.headers.remove(name)));
    }

    /// Takes the body and leaves an empty one.
    pub(crate) fn take_body(&mut self) -> OutgoingBody {
        self.body
            .take()
            .unwrap_or_else(|| Empty::new().map_err(|never| match never {}).boxed_unsync())
    }
}
