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

/// The requests of one call. Dropping it ends those that are under way, and with them the
/// bodies of their responses, and what reads the values of secrets for them.
pub struct Requests {
    client: Client,
    call: Arc<Call>,
    _end: DropGuard,
}

impl Requests {
    /// The requests of a call of the tool and the grants that `owner` names: connections
    /// are used again by calls of the same owner only, and charged to `account`. With
    /// `secrets` each request is looked through before it goes out, for which its whole body
    /// is held, and each response as it comes.
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

    /// Sends a request, whose `url` is as the tool wrote it and whose own URI is not looked
    /// at. Whether it is allowed is decided at once; the response comes with the future,
    /// and dropping that ends the request.
    ///
    /// # Errors
    ///
    /// [`RequestError`] says why there is no response.
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

    /// What was sent though it looks like a key or a token, for the log, and forgets it.
    pub fn take_warnings(&self) -> Vec<String> {
        self.call.take_warnings()
    }

    /// What became of the requests, of a hundred and one for each origin besides at most, and how
    /// many more there were.
    pub fn records(&self) -> (Vec<RequestRecord>, u64) {
        self.call.records()
    }

    /// The requests that were refused, at most fifty of them, and how many more there were.
    pub fn refused(&self) -> (Vec<RefusedRequest>, u64) {
        self.call.refused_requests()
    }

    /// The connections that could not be made, at most five of them, and forgets them.
    pub fn take_unconnected(&self) -> Vec<FailedConnection> {
        self.call.take_unconnected()
    }

    /// What was refused so far, at most five of them, and forgets it.
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
