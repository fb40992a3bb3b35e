//! The requests of one call.

use std::future::Future;
use std::sync::Arc;

use http::{Request, Response};
use kitbag_policy::http::{HttpGrants, HttpRefusal};
use kitbag_secrets::CallSecrets;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use crate::active_request::ActiveRequest;
use crate::body::IncomingBody;
use crate::call::{
    Call, CallLimits, FailedConnection, RefusedRequest, RequestRecord, RequestTimes,
};
use crate::client::Client;
use crate::error::RequestError;
use crate::exchange;
use crate::outgoing_request::{OutgoingBody, OutgoingRequest};
use crate::shares::Account;

/// The requests of one call. Dropping it cancels all unfinished requests, the bodies of their
/// responses, and programs that read secrets for them.
pub struct Requests {
    client: Client,
    call: Arc<Call>,
    _end: DropGuard,
}

impl Requests {
    /// Creates the requests of a call. `owner` identifies the tool and its grants: connections are
    /// reused only within the same owner, and charged to `account`. With `secrets`, each request is
    /// checked before it is sent, for which its whole body is buffered, and each response as it
    /// arrives.
    pub fn new(
        client: &Client,
        owner: impl Into<Arc<str>>,
        account: Account,
        grants: HttpGrants,
        limits: CallLimits,
        secrets: Option<Arc<CallSecrets>>,
    ) -> Self {
        let call = Call::new(owner.into(), account, grants, limits, secrets);
        let end = call.ended.clone().drop_guard();
        Self { client: client.clone(), call: Arc::new(call), _end: end }
    }

    /// Sends a request. `url` is the URL as the tool wrote it; the URI of `request` is ignored. The
    /// decision is immediate; the future resolves to the response, and dropping it cancels the
    /// request.
    ///
    /// # Errors
    ///
    /// [`RequestError`] has the reason.
    pub fn send(
        &self,
        url: &str,
        request: Request<OutgoingBody>,
        times: RequestTimes,
    ) -> impl Future<Output = Result<Response<IncomingBody>, RequestError>> + Send + use<> {
        let response = self.start(url, request, times);
        async { response?.await.unwrap_or(Err(RequestError::Ended)) }
    }

    fn start(
        &self,
        url: &str,
        request: Request<OutgoingBody>,
        times: RequestTimes,
    ) -> Result<oneshot::Receiver<Result<Response<IncomingBody>, RequestError>>, RequestError> {
        let (parts, body) = request.into_parts();
        let outgoing = OutgoingRequest::new(parts.method, parts.headers, body);
        let waiting = self.call.wait(outgoing.method.as_str(), url)?;
        let allowed = ActiveRequest::decide(&self.call, url, &outgoing, Instant::now())?;
        let (shared, call) = (Arc::clone(&self.client.0), Arc::clone(&self.call));
        let runtime = shared.runtime()?.clone();
        let (mut sender, response) = oneshot::channel();
        runtime.spawn(async move {
            let ended = call.ended.clone();
            let exchange = exchange::run(shared, outgoing, allowed, times);
            let result = tokio::select! {
                biased;
                () = ended.cancelled() => Err(RequestError::Ended),
                () = sender.closed() => Err(RequestError::Ended),
                result = exchange => result,
            };
            drop(waiting);
            let _ = sender.send(result);
        });
        Ok(response)
    }

    /// Removes and returns the findings that look like keys or tokens but were sent, for the log.
    pub fn take_warnings(&self) -> Vec<String> {
        self.call.take_warnings()
    }

    /// Returns the records of at most a hundred requests and one for each further origin, and the
    /// number of further requests.
    pub fn records(&self) -> (Vec<RequestRecord>, u64) {
        self.call.records()
    }

    /// Returns at most fifty refused requests, and the number of further ones.
    pub fn refused(&self) -> (Vec<RefusedRequest>, u64) {
        self.call.refused_requests()
    }

    /// Removes and returns at most five connections that could not be opened.
    pub fn take_unconnected(&self) -> Vec<FailedConnection> {
        self.call.take_unconnected()
    }

    /// Removes and returns at most five refusals.
    pub fn take_refused(&self) -> Vec<HttpRefusal> {
        self.call.take_refused()
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if let Some(secrets) = &self.call.secrets {
            secrets.end();
        }
    }
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests").field("owner", &self.call.owner).finish_non_exhaustive()
    }
}
