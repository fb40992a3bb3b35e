//! The bodies of requests, with limits.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};

use crate::active_request::ActiveRequest;
use crate::error::{BoxError, RequestError};
use crate::outgoing_request::OutgoingBody;

/// A tool's body while it is sent, up to the limit of its grants.
pub(crate) struct RequestBody {
    body: OutgoingBody,
    bytes: u64,
    allowed: ActiveRequest,
}

impl RequestBody {
    pub(crate) fn new(body: OutgoingBody, allowed: ActiveRequest) -> Self {
        Self { body, bytes: 0, allowed }
    }

    /// Creates a body that includes the host's additions and is already counted.
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
        let frame = ready!(poll_nonempty(&mut this.body, context));
        // A body that is interrupted by the end of its call is incomplete.
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

/// Polls a body for its next frame that is not empty.
///
/// Empty frames use no window of HTTP/2, so a guest that writes them without end would fill
/// the queue of a connection (GHSA-f8mm-ggr3-89wh).
fn poll_nonempty(
    body: &mut OutgoingBody,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
    loop {
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
            _ => return Poll::Ready(frame),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use super::*;

    struct Frames(VecDeque<&'static str>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            Poll::Ready(self.0.pop_front().map(|text| Ok(Frame::data(Bytes::from(text)))))
        }
    }

    #[test]
    fn empty_frames_of_a_body_are_dropped() {
        let mut body = Frames(["", "a", "", "", "b", ""].into()).boxed_unsync();
        let mut context = Context::from_waker(Waker::noop());
        let mut seen = Vec::new();
        while let Poll::Ready(Some(frame)) = poll_nonempty(&mut body, &mut context) {
            seen.push(frame.unwrap().into_data().unwrap());
        }
        assert_eq!(seen, ["a", "b"]);
    }
}
