//! A request that grants allow, while it is under way.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kitbag_policy::http::{AllowedRequest, HttpRefusal, HttpRequest};
use tokio::time::Instant;

use crate::call::{Call, RequestRecord};
use crate::error::RequestError;
use crate::outgoing_request::OutgoingRequest;

/// A request that grants allow as far as it is known: what sends its body and what reads
/// the body of its response decide on the same.
#[derive(Clone)]
pub(crate) struct ActiveRequest {
    request: Arc<HttpRequest>,
    grants: Arc<Mutex<AllowedRequest>>,
    call: Arc<Call>,
    start: Instant,
    /// What is said of it when its call has ended. `None`: there were too many.
    record: Option<Arc<Mutex<RequestRecord>>>,
}

impl ActiveRequest {
    /// Decides on one request, the tool's or a hop of a redirect, and counts it. `start` is
    /// when the tool made the first.
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

    /// `start` is when the tool made the request that led to it.
    fn new(
        allowed: AllowedRequest,
        call: Arc<Call>,
        start: Instant,
        record: Option<Arc<Mutex<RequestRecord>>>,
    ) -> Self {
        let request = Arc::new(allowed.request().clone());
        Self { request, grants: Arc::new(Mutex::new(allowed)), call, start, record }
    }

    /// Notes the status of its response.
    pub(crate) fn answered(&self, status: u16) {
        self.note(|record| record.status = Some(status));
    }

    /// Notes that its server may have received something from now on.
    pub(crate) fn sending(&self) {
        self.note(|record| record.is_sent = true);
    }

    /// Notes an error, where it is a refusal.
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

    /// Whether its host may have this address, or may be resolved by a proxy. Nothing is
    /// decided.
    pub(crate) fn opens(&self, address: Option<IpAddr>) -> bool {
        let mut grants = self.grants().clone();
        match address {
            Some(address) => grants.addresses(&[address]).is_ok(),
            None => grants.unresolved(),
        }
    }

    /// Decides whether a proxy resolves its host.
    pub(crate) fn unresolved(&self) -> bool {
        self.grants().unresolved()
    }

    /// Decides by all addresses of its host.
    pub(crate) fn addresses(&self, addresses: &[IpAddr]) -> Result<(), RequestError> {
        self.step(|grants| grants.addresses(addresses))
    }

    /// Decides by the bytes of its body so far.
    pub(crate) fn request_bytes(&self, bytes: u64) -> Result<(), RequestError> {
        self.note(|record| record.request_bytes = record.request_bytes.max(bytes));
        self.step(|grants| grants.request_bytes(bytes))
    }

    /// Decides by the bytes of the body of its response so far.
    pub(crate) fn response_bytes(&self, bytes: u64) -> Result<(), RequestError> {
        self.note(|record| record.response_bytes = record.response_bytes.max(bytes));
        self.step(|grants| grants.response_bytes(bytes))
    }

    /// Whether one more redirect is followed.
    pub(crate) fn follows(&self, followed: u8) -> bool {
        self.grants().follows(followed)
    }

    /// When its time is over. `None`: with its call.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.grants().time().map(|time| self.start + time)
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Decides by the time it took, once that is as long as the longest that a grant has.
    pub(crate) fn elapsed(&self) -> Result<(), RequestError> {
        // The timer may be a moment ahead.
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
