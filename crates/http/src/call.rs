//! State that the requests of one call share: grants, limits, counters and records.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderName;
use kitbag_policy::http::{AllowedRequest, HttpGrants, HttpRefusal, HttpRequest, RefusalKind};
use kitbag_secrets::{CallSecrets, Redactor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::error::RequestError;
use crate::headers;
use crate::outgoing_request::OutgoingRequest;
use crate::shares::Account;

/// The most concurrent requests of one call; further ones wait.
const AT_ONCE: usize = 16;

/// The most requests of one call whose responses have not started; further ones are refused. Each
/// holds its header fields and a part of its body.
const MOST_WAITING: usize = 50;

/// The most refusals of one call that are kept for its error.
const MOST_REFUSED: usize = 5;

/// The most requests of one call that are kept for its record.
const MOST_MADE: usize = 100;

/// The most of these that were refused immediately, so that they leave room for others.
const MOST_UNSENT: usize = 50;

/// The most requests beyond [`MOST_MADE`] that are also kept because their origin is new.
const MOST_ORIGINS: usize = 100;

/// The longest method that is kept, and the longest origin, in bytes.
const METHOD_BYTES: usize = 32;
const ORIGIN_BYTES: usize = 300;

/// The most failed connections of one call that are kept for its error.
const MOST_UNCONNECTED: usize = 5;

/// The most warnings of one call that are kept for the log.
const MOST_WARNINGS: usize = 20;

/// Limits on the requests of one call, in addition to its grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Requests, including each hop of a redirect. Default: 50.
    pub requests: u64,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { requests: 50 }
    }
}

/// Time limits that a tool sets for one request, within those of its grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// The time until a connection is open.
    pub connect: Option<Duration>,
    /// The time until the response starts.
    pub first_byte: Option<Duration>,
    /// The time between two parts of the response.
    pub between_bytes: Option<Duration>,
}

/// The record of one request, or of one hop of a redirect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRecord {
    /// The method.
    pub method: String,
    /// Scheme, host and port; empty if the URL is not valid. Path and query may contain secrets.
    pub origin: String,
    /// The status of the response. `None`: there was no response.
    pub status: Option<u16>,
    /// True if any part of the request was sent.
    pub is_sent: bool,
    /// The bytes of its body. 0 if nothing was sent.
    pub request_bytes: u64,
    /// The bytes of the response's body that were read.
    pub response_bytes: u64,
    /// The pattern of the grant that allowed the request; empty if none did, or if it was refused
    /// before anything was sent.
    pub grant: String,
    /// The refused part, if the request was refused at any time.
    pub refused: Option<RefusalKind>,
}

/// A connection that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedConnection {
    /// The reason.
    pub reason: String,
    /// True if a proxy refused the connection or could not be reached.
    pub is_of_proxy: bool,
    /// True if kitbag could not resolve the name of the host.
    pub is_of_name: bool,
}

/// Refused requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The method.
    pub method: String,
    /// The origin, as in [`RequestRecord`].
    pub origin: String,
    /// The refused part.
    pub kind: RefusalKind,
    /// The rule, pattern or secret that caused the refusal.
    pub by: Option<String>,
    /// The number of requests.
    pub times: u64,
}

/// The records of a call's requests.
#[derive(Debug, Default)]
struct Made {
    requests: Vec<Arc<Mutex<RequestRecord>>>,
    /// The number of those that were refused immediately.
    unsent: usize,
    /// The origins of all others.
    origins: HashSet<String>,
    /// The number of further requests.
    more: u64,
    refused: Vec<RefusedRequest>,
    /// The number of further refusals.
    more_refused: u64,
}

/// State that the requests of one call share.
pub(crate) struct Call {
    /// The tool and its grants. Connections are reused only within the same owner.
    pub(crate) owner: Arc<str>,
    /// The account that its connections are charged to.
    pub(crate) account: Account,
    grants: HttpGrants,
    pub(crate) permits: Arc<Semaphore>,
    /// Each request holds a permit until its response starts.
    waiting: Arc<Semaphore>,
    /// Held by the one request whose whole body is in memory.
    pub(crate) whole: Semaphore,
    pub(crate) ended: CancellationToken,
    /// The secrets that are added to requests and masked in responses.
    pub(crate) secrets: Option<Arc<CallSecrets>>,
    limits: CallLimits,
    sent: AtomicU64,
    made: Mutex<Made>,
    refused: Mutex<Vec<HttpRefusal>>,
    unconnected: Mutex<Vec<FailedConnection>>,
    warnings: Mutex<Vec<String>>,
}

impl Call {
    pub(crate) fn new(
        owner: Arc<str>,
        account: Account,
        grants: HttpGrants,
        limits: CallLimits,
        secrets: Option<Arc<CallSecrets>>,
    ) -> Self {
        Self {
            owner,
            account,
            grants,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Arc::new(Semaphore::new(MOST_WAITING)),
            whole: Semaphore::new(1),
            ended: CancellationToken::new(),
            secrets,
            limits,
            sent: AtomicU64::new(0),
            made: Mutex::default(),
            refused: Mutex::default(),
            unconnected: Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    /// Takes a permit of the requests that wait for their responses.
    pub(crate) fn wait(
        &self,
        method: &str,
        url: &str,
    ) -> Result<OwnedSemaphorePermit, HttpRefusal> {
        Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            let reason = format!(
                "{MOST_WAITING} requests of the call wait for their responses, which is the \
                 limit"
            );
            let refusal = HttpRefusal::new(RefusalKind::Rate, reason);
            self.refused_at_once(method, url, &refusal);
            refusal
        })
    }

    /// Decides on one request and counts it.
    pub(crate) fn decide(
        &self,
        url: &str,
        outgoing: &OutgoingRequest,
    ) -> Result<AllowedRequest, HttpRefusal> {
        headers::check(&outgoing.headers)?;
        let request = HttpRequest::new(outgoing.method.as_str(), url)?;
        let mut allowed = self.grants.decide(&request)?;
        allowed.headers(outgoing.headers.keys().map(HeaderName::as_str))?;
        let limit = self.limits.requests;
        if self.sent.fetch_add(1, Ordering::Relaxed) >= limit {
            // The counter stops at the limit, so that it never wraps.
            self.sent.store(limit, Ordering::Relaxed);
            let reason = format!(
                "the call has reached its limit `requests`, {limit}; allow more with `limits.requests` of \
                 the tool"
            );
            return Err(HttpRefusal::new(RefusalKind::Rate, reason));
        }
        Ok(allowed)
    }

    /// Starts the record of a request that its method and URL allow.
    pub(crate) fn record(&self, allowed: &AllowedRequest) -> Option<Arc<Mutex<RequestRecord>>> {
        let request = allowed.request();
        let record = RequestRecord {
            method: cut(request.method().as_str(), METHOD_BYTES),
            origin: cut(&request.origin_url(), ORIGIN_BYTES),
            grant: allowed.by().url.to_string(),
            ..RequestRecord::default()
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = made.requests.len() >= MOST_MADE;
        let is_new = made.origins.len() < MOST_ORIGINS && !made.origins.contains(&record.origin);
        if is_full && !is_new {
            made.more += 1;
            return None;
        }
        if is_new {
            made.origins.insert(record.origin.clone());
        }
        let record = Arc::new(Mutex::new(record));
        made.requests.push(Arc::clone(&record));
        Some(record)
    }

    /// Records a request that was refused before anything was sent.
    pub(crate) fn refused_at_once(&self, method: &str, url: &str, refusal: &HttpRefusal) {
        let origin = HttpRequest::new(method, url).map(|request| request.origin_url());
        let origin = origin.unwrap_or_default();
        self.refused(method, &origin, refusal);
        let record = RequestRecord {
            method: cut(method, METHOD_BYTES),
            origin: cut(&origin, ORIGIN_BYTES),
            refused: Some(refusal.kind),
            ..RequestRecord::default()
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.unsent >= MOST_UNSENT || made.requests.len() >= MOST_MADE {
            made.more += 1;
            return;
        }
        made.unsent += 1;
        made.requests.push(Arc::new(Mutex::new(record)));
    }

    /// Returns the redactor of the values that the call has read.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.secrets.as_ref().map(|secrets| secrets.redactor()).unwrap_or_default()
    }

    /// Records findings that look like keys or tokens but were sent.
    pub(crate) fn warned(&self, warnings: Vec<String>) {
        let mut noted = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let left = MOST_WARNINGS.saturating_sub(noted.len());
        noted.extend(warnings.into_iter().take(left));
    }

    /// Records a refusal for the call's error and for its record.
    pub(crate) fn refused(&self, method: &str, origin: &str, refusal: &HttpRefusal) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MOST_REFUSED && !refused.contains(refusal) {
            refused.push(refusal.clone());
        }
        drop(refused);
        let (method, origin) = (cut(method, METHOD_BYTES), cut(origin, ORIGIN_BYTES));
        let by = refusal.by.as_ref().map(ToString::to_string);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let same = made.refused.iter().position(|it| {
            it.kind == refusal.kind && it.method == method && it.origin == origin && it.by == by
        });
        match same {
            Some(same) => made.refused[same].times += 1,
            None if made.refused.len() < MOST_UNSENT => {
                let kind = refusal.kind;
                made.refused.push(RefusedRequest { method, origin, kind, by, times: 1 });
            }
            None => made.more_refused += 1,
        }
    }

    /// Records a connection that could not be opened.
    pub(crate) fn unconnected(&self, error: &RequestError) {
        let (is_of_proxy, is_of_name) = match error {
            RequestError::Proxy { .. } => (true, false),
            RequestError::Name { .. } => (false, true),
            RequestError::Connect { .. } | RequestError::Tls { .. } => (false, false),
            _ => return,
        };
        let failed = FailedConnection { reason: error.to_string(), is_of_proxy, is_of_name };
        let mut unconnected = self.unconnected.lock().unwrap_or_else(PoisonError::into_inner);
        if unconnected.len() < MOST_UNCONNECTED && !unconnected.contains(&failed) {
            unconnected.push(failed);
        }
    }

    /// Removes and returns the connections that could not be opened.
    pub(crate) fn take_unconnected(&self) -> Vec<FailedConnection> {
        std::mem::take(&mut self.unconnected.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Removes and returns the findings that look like keys or tokens but were sent.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the records, and the number of further requests.
    pub(crate) fn records(&self) -> (Vec<RequestRecord>, u64) {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let records = made.requests.iter().map(|record| {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if !record.is_sent {
                record.request_bytes = 0;
                if record.refused.is_some() {
                    record.grant.clear();
                }
            }
            record
        });
        (records.collect(), made.more)
    }

    /// Returns the refused requests, and the number of further ones.
    pub(crate) fn refused_requests(&self) -> (Vec<RefusedRequest>, u64) {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        (made.refused.clone(), made.more_refused)
    }

    /// Removes and returns the refusals.
    pub(crate) fn take_refused(&self) -> Vec<HttpRefusal> {
        std::mem::take(&mut self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Cuts a string of the tool to at most `bytes` bytes.
fn cut(text: &str, bytes: usize) -> String {
    match text.len() <= bytes {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(bytes)]),
    }
}
