//! The bodies of responses, with limits.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::time::{Instant, Sleep};

use crate::active_request::ActiveRequest;
use crate::error::{RequestError, TimePhase};
use crate::lease::Lease;

/// The body of a response, limited in size and time, and to the duration of the call.
pub struct IncomingBody {
    body: UnsyncBoxBody<Bytes, RequestError>,
    bytes: u64,
    allowed: ActiveRequest,
    /// The time limit for the whole body.
    until: Option<Pin<Box<Sleep>>>,
    /// The time limit for the next part, if the tool set one.
    between: Option<(Duration, Pin<Box<Sleep>>)>,
    /// The connection, until the body has ended.
    lease: Option<Lease>,
}

impl IncomingBody {
    /// Must be created inside the runtime of the connections, whose timers it uses.
    pub(crate) fn new(
        body: UnsyncBoxBody<Bytes, RequestError>,
        allowed: ActiveRequest,
        between: Option<Duration>,
        lease: Lease,
    ) -> Self {
        let until = allowed.until().map(|until| Box::pin(tokio::time::sleep_until(until)));
        let between = between.map(|time| (time, Box::pin(tokio::time::sleep(time))));
        let mut this = Self { body, bytes: 0, allowed, until, between, lease: Some(lease) };
        if this.body.is_end_stream() {
            this.end();
        }
        this
    }

    /// Returns the whole body, which is limited in size.
    ///
    /// # Errors
    ///
    /// If the body is incomplete or exceeds a limit.
    pub async fn whole(self) -> Result<Bytes, RequestError> {
        Ok(self.collect().await?.to_bytes())
    }

    /// The body was read to its end, so the connection can be reused.
    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }

    fn next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestError>>> {
        if self.lease.is_none() {
            return Poll::Ready(None);
        }
        if self.allowed.call().ended.is_cancelled() {
            return Poll::Ready(Some(Err(RequestError::Ended)));
        }
        if self.bytes == 0 {
            // The length that the server declares.
            self.allowed.response_bytes(self.body.size_hint().lower())?;
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let Some(frame) = frame else { return Poll::Ready(None) };
            let frame = frame?;
            self.bytes = self.bytes.saturating_add(frame.data_ref().map_or(0, Bytes::len) as u64);
            self.allowed.response_bytes(self.bytes)?;
            if let Some((time, sleep)) = &mut self.between {
                sleep.as_mut().reset(Instant::now() + *time);
            }
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(until) = &mut self.until {
            while until.as_mut().poll(context).is_ready() {
                self.allowed.elapsed()?;
                // A grant with a shorter time limit had a lower size limit.
                let Some(at) = self.allowed.until() else { break };
                until.as_mut().reset(at);
            }
        }
        if let Some((_, sleep)) = &mut self.between
            && sleep.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(RequestError::Time(TimePhase::BetweenBytes))));
        }
        Poll::Pending
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = RequestError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestError>>> {
        let this = self.get_mut();
        let next = ready!(this.next(context));
        match &next {
            Some(Ok(_)) if !this.body.is_end_stream() => {}
            Some(Ok(_)) | None => this.end(),
            // No more data follows, and the connection cannot be reused.
            Some(Err(_)) => this.lease = None,
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl std::fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingBody").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
