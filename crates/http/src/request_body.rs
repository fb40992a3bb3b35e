//! The bodies of requests, as they are counted.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};

use crate::active_request::ActiveRequest;
use crate::error::{BoxError, RequestError};
use crate::outgoing_request::OutgoingBody;

/// A tool's body on its way out, up to the limit of its grants.
pub(crate) struct RequestBody {
    body: OutgoingBody,
    bytes: u64,
    allowed: ActiveRequest,
}

impl RequestBody {
    pub(crate) fn new(body: OutgoingBody, allowed: ActiveRequest) -> Self {
        Self { body, bytes: 0, allowed }
    }

    /// A body with what the host put into it, which is counted already.
    pub(crate) fn sent(body: Bytes, allowed: ActiveRequest) -> Self {
        let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
        Self { body, bytes: 0, allowed }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        // A body that breaks off with its call is not whole.
        if this.allowed.call().ended.is_cancelled() {
            return Poll::Ready(Some(Err(RequestError::Ended.into())));
        }
        let Some(frame) = frame else { return Poll::Ready(None) };
        let frame = frame?;
        if let Some(data) = frame.data_ref() {
            this.bytes = this.bytes.saturating_add(data.len() as u64);
            this.allowed.request_bytes(this.bytes)?;
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && !self.allowed.call().ended.is_cancelled()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
