//! What the requests of one call share: its grants and limits, what is counted of them, and what
//! became of each.

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
use crate::outgoing::Outgoing;

/// Requests of one call that are under way at once; the next ones wait.
const AT_ONCE: usize = 16;

/// Requests of one call whose responses have not begun; one more is refused. Each holds its
/// header fields and a part of its body.
const MOST_WAITING: usize = 50;

/// Refusals of one call that are kept for its error.
const MOST_REFUSED: usize = 5;

/// Requests of one call that are kept for its record.
const MOST_MADE: usize = 100;

/// Warnings of one call that are kept for the log.
const MOST_WARNINGS: usize = 20;

/// What bounds the requests of one call, besides its grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Requests, with each hop of a redirect. Default: 50.
    pub requests: u64,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { requests: 50 }
    }
}

/// The times that a tool sets for one request, within those of its grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// Until there is a connection.
    pub connect: Option<Duration>,
    /// Until the response begins.
    pub first_byte: Option<Duration>,
    /// Between two parts of the response.
    pub between_bytes: Option<Duration>,
}

/// What became of one request, or one hop of a redirect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its method.
    pub method: String,
    /// Scheme, host and port; empty where its URL is not one. Path and query may hold secrets.
    pub origin: String,
    /// The status of the response. `None`: there was none.
    pub status: Option<u16>,
    /// The bytes of its body.
    pub request_bytes: u64,
    /// The bytes of the response's body that were read.
    pub response_bytes: u64,
    /// The pattern of the grant that allowed it at first; empty where none did.
    pub grant: String,
    /// What it was refused for, at once or on its way.
    pub refused: Option<RefusalKind>,
}

/// The records of a call's requests.
#[derive(Debug, Default)]
struct Made {
    requests: Vec<Arc<Mutex<RequestRecord>>>,
    /// How many more there were.
    more: u64,
}

/// What the requests of one call share.
pub(crate) struct Call {
    /// The tool and its grants, within which connections are used again.
    pub(crate) owner: Arc<str>,
    grants: HttpGrants,
    pub(crate) permits: Arc<Semaphore>,
    /// Held by each until its response begins.
    waiting: Arc<Semaphore>,
    /// Held by the one request whose whole body is in memory.
    pub(crate) whole: Semaphore,
    pub(crate) ended: CancellationToken,
    /// What is put into requests, and masked in responses.
    pub(crate) secrets: Option<Arc<CallSecrets>>,
    limits: CallLimits,
    sent: AtomicU64,
    made: Mutex<Made>,
    refused: Mutex<Vec<HttpRefusal>>,
    warnings: Mutex<Vec<String>>,
}

impl Call {
    pub(crate) fn new(
        owner: Arc<str>,
        grants: HttpGrants,
        limits: CallLimits,
        secrets: Option<Arc<CallSecrets>>,
    ) -> Self {
        Self {
            owner,
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
            warnings: Mutex::default(),
        }
    }

    /// Takes a place among the requests that wait for their responses.
    pub(crate) fn wait(&self) -> Result<OwnedSemaphorePermit, HttpRefusal> {
        Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            let reason = format!(
                "{MOST_WAITING} requests of the call wait for their responses, the most that may at \
                 once"
            );
            let refusal = HttpRefusal::new(RefusalKind::Rate, reason);
            self.refused(refusal.clone());
            refusal
        })
    }

    /// Decides on one request, and counts it.
    pub(crate) fn decide(
        &self,
        url: &str,
        outgoing: &Outgoing,
    ) -> Result<AllowedRequest, HttpRefusal> {
        headers::check(&outgoing.headers)?;
        let request = HttpRequest::new(outgoing.method.as_str(), url)?;
        let mut allowed = self.grants.decide(&request)?;
        allowed.headers(outgoing.headers.keys().map(HeaderName::as_str))?;
        let limit = self.limits.requests;
        if self.sent.fetch_add(1, Ordering::Relaxed) >= limit {
            // The counter stays where it is, so that it never wraps.
            self.sent.store(limit, Ordering::Relaxed);
            let reason = format!(
                "the call has reached its limit `requests`, {limit}; allow more with `limits.requests` of \
                 the tool"
            );
            return Err(HttpRefusal::new(RefusalKind::Rate, reason));
        }
        Ok(allowed)
    }

    /// Begins the record of a request that is allowed at first.
    pub(crate) fn record(&self, allowed: &AllowedRequest) -> Option<Arc<Mutex<RequestRecord>>> {
        let request = allowed.request();
        self.keep(RequestRecord {
            method: request.method().to_string(),
            origin: request.origin_url(),
            grant: allowed.by().url.to_string(),
            ..RequestRecord::default()
        })
    }

    /// Keeps a record, where there is room.
    pub(crate) fn keep(&self, record: RequestRecord) -> Option<Arc<Mutex<RequestRecord>>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.requests.len() >= MOST_MADE {
            made.more += 1;
            return None;
        }
        let record = Arc::new(Mutex::new(record));
        made.requests.push(Arc::clone(&record));
        Some(record)
    }

    /// What masks the values that the call has read.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.secrets.as_ref().map(|secrets| secrets.redactor()).unwrap_or_default()
    }

    /// Notes an error that is a refusal.
    pub(crate) fn failed(&self, error: &RequestError) {
        if let RequestError::Refused(refusal) = error {
            self.refused(refusal.clone());
        }
    }

    /// Notes what was sent though it looks like a key or a token.
    pub(crate) fn warned(&self, warnings: Vec<String>) {
        let mut noted = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let left = MOST_WARNINGS.saturating_sub(noted.len());
        noted.extend(warnings.into_iter().take(left));
    }

    /// Notes a refusal for the call's error.
    pub(crate) fn refused(&self, refusal: HttpRefusal) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MOST_REFUSED && !refused.contains(&refusal) {
            refused.push(refusal);
        }
    }

    /// What was sent though it looks like a key or a token, and forgets it.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The records that were kept, and how many more there were.
    pub(crate) fn records(&self) -> (Vec<RequestRecord>, u64) {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let records = made.requests.iter();
        let records = records.map(|it| it.lock().unwrap_or_else(PoisonError::into_inner).clone());
        (records.collect(), made.more)
    }

    /// What was refused, and forgets it.
    pub(crate) fn take_refused(&self) -> Vec<HttpRefusal> {
        std::mem::take(&mut self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
