//! The state of an allowed request.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kitbag_policy::http::{AllowedRequest, HttpRefusal, HttpRequest};
use tokio::time::Instant;

use crate::call::{Call, RequestRecord};
use crate::error::RequestError;
use crate::outgoing_request::OutgoingRequest;

/// A request that grants allow in its known parts: the code that sends its body and the code that reads its
/// response decide on the same state.
#[derive(Clone)]
pub(crate) struct ActiveRequest {
    request: Arc<HttpRequest>,
    grants: Arc<Mutex<AllowedRequest>>,
    call: Arc<Call>,
    start: Instant,
    /// The record of the request for the end of its call. `None`: there were too many.
    record: Option<Arc<Mutex<RequestRecord>>>,
}

impl ActiveRequest {
    /// Decides on one request, the tool's or a hop of a redirect, and counts it. `start` is the
    /// time of the tool's request.
    pub(crate) fn decide(
        call: &Arc<Call>,
        url: &str,
        outgoing: &OutgoingRequest,
        start: Instant,
    ) -> Result<Self, RequestError> {
        match call.decide(url, outgoing) {
            Ok(allowed) => {
                let record = call.record(&allowed);
                Ok(Self::new(allowed, Arc::clone(call), start, record))
            }
            Err(refusal) => {
                call.refused_at_once(outgoing.method.as_str(), url, &refusal);
                Err(refusal.into())
            }
        }
    }

    /// `start` is the time of the tool's request that led to this one.
    fn new(
        allowed: AllowedRequest,
        call: Arc<Call>,
        start: Instant,
        record: Option<Arc<Mutex<RequestRecord>>>,
    ) -> Self {
        let request = Arc::new(allowed.request().clone());
        Self { request, grants: Arc::new(Mutex::new(allowed)), call, start, record }
    }

    /// Records the status of the response.
    pub(crate) fn answered(&self, status: u16) {
        self.note(|record| record.status = Some(status));
    }

    /// Records that the server may receive data from now on.
    pub(crate) fn sending(&self) {
        self.note(|record| record.is_sent = true);
    }

    /// Records an error if it is a refusal.
    pub(crate) fn failed(&self, error: &RequestError) {
        if let RequestError::Refused(refusal) = error {
            self.refused(refusal);
        }
    }

    fn refused(&self, refusal: &HttpRefusal) {
        self.note(|record| record.refused = Some(refusal.kind));
        let request = &self.request;
        self.call.refused(request.method().as_str(), &request.origin_url(), refusal);
    }

    fn note(&self, change: impl FnOnce(&mut RequestRecord)) {
        if let Some(record) = &self.record {
            change(&mut record.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    pub(crate) fn request(&self) -> &Arc<HttpRequest> {
        &self.request
    }

    pub(crate) fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Returns true if the host may have this address, or may be resolved by a proxy. Does not
    /// change the state.
    pub(crate) fn opens(&self, address: Option<IpAddr>) -> bool {
        let mut grants = self.grants().clone();
        match address {
            Some(address) => grants.addresses(&[address]).is_ok(),
            None => grants.unresolved(),
        }
    }

    /// Decides whether a proxy resolves the host.
    pub(crate) fn unresolved(&self) -> bool {
        self.grants().unresolved()
    }

    /// Decides by all addresses of the host.
    pub(crate) fn addresses(&self, addresses: &[IpAddr]) -> Result<(), RequestError> {
        self.step(|grants| grants.addresses(addresses))
    }

    /// Decides by the number of bytes of the body that were sent.
    pub(crate) fn request_bytes(&self, bytes: u64) -> Result<(), RequestError> {
        self.note(|record| record.request_bytes = record.request_bytes.max(bytes));
        self.step(|grants| grants.request_bytes(bytes))
    }

    /// Decides by the number of bytes of the response's body that were received.
    pub(crate) fn response_bytes(&self, bytes: u64) -> Result<(), RequestError> {
        self.note(|record| record.response_bytes = record.response_bytes.max(bytes));
        self.step(|grants| grants.response_bytes(bytes))
    }

    /// Returns true if another redirect is followed.
    pub(crate) fn follows(&self, followed: u8) -> bool {
        self.grants().follows(followed)
    }

    /// Returns the end of the time limit. `None`: the end of the call.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.grants().time().map(|time| self.start + time)
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Decides by the elapsed time once it reaches the longest limit of a grant.
    pub(crate) fn elapsed(&self) -> Result<(), RequestError> {
        // The timer may fire slightly early.
        let elapsed = self.start.elapsed();
        self.step(|grants| {
            let least =
                grants.time().map(|time| time.saturating_add(std::time::Duration::from_nanos(1)));
            grants.elapsed(least.map_or(elapsed, |least| elapsed.max(least)))
        })
    }

    fn step(
        &self,
        decide: impl FnOnce(&mut AllowedRequest) -> Result<(), HttpRefusal>,
    ) -> Result<(), RequestError> {
        let decided = decide(&mut self.grants());
        if let Err(refusal) = &decided {
            self.refused(refusal);
        }
        Ok(decided?)
    }

    fn grants(&self) -> MutexGuard<'_, AllowedRequest> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
