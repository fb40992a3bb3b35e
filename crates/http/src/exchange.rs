//! One request of a tool, from its redirects to the start of its response.
//!
//! Runs inside the runtime of the connections.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use kitbag_policy::http::HttpRequest;
use tokio::time::{timeout, timeout_at};

use crate::active_request::ActiveRequest;
use crate::body::IncomingBody;
use crate::call::RequestTimes;
use crate::client::Shared;
use crate::connect::connect;
use crate::error::{RequestError, TimePhase};
use crate::inspected_body::{self, InspectedBody};
use crate::lease::{Lease, keep};
use crate::outgoing_request::OutgoingRequest;
use crate::pool::{Connection, Key, Sender};
use crate::redirect;
use crate::request_body::RequestBody;
use crate::secrets;

/// Sends an allowed request and follows redirects as far as grants permit.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut outgoing: OutgoingRequest,
    mut allowed: ActiveRequest,
    times: RequestTimes,
) -> Result<Response<IncomingBody>, RequestError> {
    let mut followed = 0;
    loop {
        let (response, lease) =
            in_time(&allowed, pin!(hop(&shared, &mut outgoing, &allowed, times))).await?;
        allowed.answered(response.status().as_u16());
        if redirect::is_one(&response, &outgoing) && allowed.follows(followed) {
            let redactor = allowed.call().redactor();
            let url = redirect::next(&response, &mut outgoing, allowed.request(), &redactor)
                .inspect_err(|error| allowed.failed(error))?;
            followed += 1;
            allowed = ActiveRequest::decide(allowed.call(), &url, &outgoing, allowed.start())?;
            continue;
        }
        return finish(response, lease, allowed, times);
    }
}

/// Waits within the time limit of the grants.
async fn in_time<T>(
    allowed: &ActiveRequest,
    mut work: Pin<&mut impl Future<Output = Result<T, RequestError>>>,
) -> Result<T, RequestError> {
    loop {
        let Some(until) = allowed.until() else { return work.await };
        match timeout_at(until, work.as_mut()).await {
            Ok(done) => return done,
            Err(_) => allowed.elapsed()?,
        }
    }
}

/// Sends a request to its current destination, over a kept or a new connection.
async fn hop(
    shared: &Arc<Shared>,
    outgoing: &mut OutgoingRequest,
    allowed: &ActiveRequest,
    times: RequestTimes,
) -> Result<(Response<Incoming>, Lease), RequestError> {
    let call = allowed.call();
    let mut permit = call.permits.clone().acquire_owned().await.map_err(|_| RequestError::Ended)?;
    let body = outgoing.take_body();
    allowed.request_bytes(body.size_hint().lower())?;
    let body = RequestBody::new(body, allowed.clone());
    let mut _whole = None;
    let (mut path, mut headers) = (redirect::path_of(allowed.request()), outgoing.headers.clone());
    let body = match &call.secrets {
        None => body,
        Some(secrets) => {
            if !body.is_end_stream() {
                _whole = Some(call.whole.acquire().await.map_err(|_| RequestError::Ended)?);
            }
            let whole = body.collect().await.map_err(RequestError::of_body)?.to_bytes();
            // A body that was opened but is empty can be sent again.
            outgoing.is_empty |= whole.is_empty();
            let prepared = secrets::prepare(secrets, allowed.request(), headers, whole).await;
            let prepared = prepared.inspect_err(|error| {
                allowed.failed(error);
                call.warned(vec![error.to_string()]);
            })?;
            call.warned(prepared.warnings);
            (path, headers) = (prepared.path, prepared.headers);
            if !secrets.redactor().is_empty() {
                inspected_body::ask(&mut headers);
            }
            RequestBody::sent(prepared.body, allowed.clone())
        }
    };
    let mut request = Request::new(body);
    *request.method_mut() = outgoing.method.clone();
    *request.headers_mut() = headers;
    let key = Key::new(&call.owner, allowed.request());
    loop {
        let kept = shared.pool.take(&key, |address| allowed.opens(address));
        let is_kept = kept.is_some();
        let connection = match kept {
            Some(mut connection) => {
                if !connection.is_ready().await {
                    continue;
                }
                match connection.address {
                    Some(address) => allowed.addresses(&[address])?,
                    None if allowed.unresolved() => {}
                    None => continue,
                }
                connection
            }
            None => {
                let connect = connect(shared, allowed);
                let connected = within(times.connect, TimePhase::Connect, connect).await?;
                let connection = connected.inspect_err(|error| call.unconnected(error))?;
                if let Some(same) = connection.share() {
                    keep(shared, key.clone(), same);
                }
                connection
            }
        };
        let (shared, key) = (Arc::clone(shared), key.clone());
        let mut lease = Lease { shared, key, connection, permit };
        allowed.sending();
        let sent = send(&mut lease.connection, request, allowed.request(), path.clone());
        match within(times.first_byte, TimePhase::FirstByte, sent).await? {
            Ok(response) => return Ok((response, lease)),
            // The server closed the idle connection, so nothing was sent.
            Err(NotSent { request: Some(unsent), .. }) if is_kept => {
                (request, permit) = (unsent, lease.permit);
            }
            Err(NotSent { error, .. }) => return Err(RequestError::of_hyper(&error)),
        }
    }
}

/// Waits within a time limit of the tool.
async fn within<T>(
    time: Option<Duration>,
    phase: TimePhase,
    work: impl Future<Output = T>,
) -> Result<T, RequestError> {
    match time {
        Some(time) => timeout(time, work).await.map_err(|_| RequestError::Time(phase)),
        None => Ok(work.await),
    }
}

struct NotSent {
    error: hyper::Error,
    /// The request, if no part of it was sent.
    request: Option<Request<RequestBody>>,
}

/// Sends a request in the form of the HTTP version.
async fn send(
    connection: &mut Connection,
    mut request: Request<RequestBody>,
    to: &HttpRequest,
    path: String,
) -> Result<Response<Incoming>, NotSent> {
    let not_sent = |mut error: TrySendError<Request<RequestBody>>| NotSent {
        request: error.take_message(),
        error: error.into_error(),
    };
    let authority = to.authority();
    match &mut connection.sender {
        Sender::Http1(sender) => {
            let host = HeaderValue::try_from(authority).expect("a host is a header value");
            request.headers_mut().insert(header::HOST, host);
            *request.uri_mut() = Uri::try_from(path).expect("a path is a URI");
            sender.try_send_request(request).await.map_err(not_sent)
        }
        Sender::Http2(sender) => {
            // `:authority` replaces it.
            request.headers_mut().remove(header::HOST);
            let uri = Uri::builder().scheme(to.scheme().as_str()).authority(authority);
            *request.uri_mut() = uri.path_and_query(path).build().expect("a request has a URI");
            *request.version_mut() = Version::HTTP_2;
            sender.try_send_request(request).await.map_err(not_sent)
        }
    }
}

/// Returns the response for the tool.
fn finish(
    response: Response<Incoming>,
    lease: Lease,
    allowed: ActiveRequest,
    times: RequestTimes,
) -> Result<Response<IncomingBody>, RequestError> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(RequestError::Upgrade);
    }
    let (mut parts, body) = response.into_parts();
    parts.extensions.clear();
    let mut body = body.map_err(|error| RequestError::of_hyper(&error)).boxed_unsync();
    let redactor = allowed.call().redactor();
    if !redactor.is_empty() {
        body =
            InspectedBody::new(body, &mut parts.headers, redactor, allowed.clone())?.boxed_unsync();
    }
    Ok(Response::from_parts(parts, IncomingBody::new(body, allowed, times.between_bytes, lease)))
}
