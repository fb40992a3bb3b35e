//! HTTP: the standard interface `wasi:http`, implemented with the HTTP client of the process.
//!
//! The interface is offered to every component, so that a component which only links it runs.
//! [`kitbag_http`] checks each request against the grants.

mod handler;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full, Limited};
use kitbag_base::ByteSize;
use kitbag_contract::Limits;
use kitbag_http::{
    Account, BoxError, CallLimits, Client, FailedConnection, IncomingBody, RefusedRequest,
    RequestError, RequestRecord, RequestTimes, Requests, TimePhase,
};
use kitbag_policy::HttpGrant;
use kitbag_policy::http::{HttpGrants, HttpRefusal, RefusalKind};
use tokio::runtime::Handle;
use wasmtime_wasi::ResourceTable;
use wasmtime_wasi_http::p2::bindings::http::types;
use wasmtime_wasi_http::p3::bindings::http as asynchronous;
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttp, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks,
};

use super::context::GrantContext;
use super::secrets::HeldSecrets;
use crate::call::refusals::{Refusal, Refusals};
use crate::call::state::State;
use crate::interface::{Interfaces, Version};

/// Maximum size of the header fields in one `fields` resource. A guest may have up to
/// [`HANDLES`](crate::limits::HANDLES) of these resources.
const FIELDS_BYTES: usize = 32 << 10;

/// Maximum size of a body chunk from a guest.
const CHUNK_BYTES: usize = 64 << 10;

/// Host memory for the HTTP requests of one call: header fields, 16 MiB; and the buffers of 16
/// active and 50 waiting requests, regardless of the limit on their number.
const HTTP_BYTES: ByteSize = ByteSize::mib(32);

pub(crate) const INTERFACES: Interfaces = Interfaces {
    version: Version::Wasi,
    bytes: HTTP_BYTES,
    list: &[
        ("wasi:http/outgoing-handler", PURPOSE, handler::add_handler_to_linker),
        ("wasi:http/types", PURPOSE, |l| {
            let options = types::LinkOptions::default();
            types::add_to_linker::<_, WasiHttp>(l, &options, State::http)
        }),
    ],
};

pub(crate) const ASYNC_INTERFACES: Interfaces = Interfaces {
    version: Version::Wasi3,
    bytes: HTTP_BYTES,
    list: &[
        ("wasi:http/client", PURPOSE, |l| {
            asynchronous::client::add_to_linker::<_, WasiHttp>(l, State::http)
        }),
        ("wasi:http/types", PURPOSE, |l| {
            asynchronous::types::add_to_linker::<_, WasiHttp>(l, State::http)
        }),
    ],
};

const PURPOSE: &str = "requests that a grant allows";

pub(crate) struct HeldHttp {
    context: WasiHttpCtx,
    sending: Sending,
}

struct Sending {
    /// Name of the tool. Connections are reused only for the same tool and grants.
    tool: String,
    account: Account,
    grants: HttpGrants,
    client: Client,
    secrets: HeldSecrets,
    limits: CallLimits,
    /// Created by the first request, even if it is refused.
    requests: Option<Requests>,
}

/// Result of a request: the response, and the remaining work of its connection.
type Sent = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl HeldHttp {
    pub(crate) fn new(granting: GrantContext<'_>, limits: &Limits, secrets: &HeldSecrets) -> Self {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(FIELDS_BYTES);
        let GrantContext { tool, account, grants, client, .. } = granting;
        let sending = Sending {
            tool: tool.to_owned(),
            account: account.clone(),
            grants: grants.http.clone(),
            client: client.clone(),
            secrets: secrets.clone(),
            limits: CallLimits { requests: limits.requests },
            requests: None,
        };
        Self { context, sending }
    }

    pub(crate) fn view<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { hooks: &mut self.sending, table, ctx: &mut self.context }
    }

    /// Sends a request with its whole body, and receives the whole response, for host functions
    /// other than those of `wasi:http`. The decision is immediate.
    ///
    /// # Errors
    ///
    /// [`RequestError`] has the reason, also if the body of the response exceeds `limit` bytes.
    pub(crate) fn exchange(
        &mut self,
        url: &str,
        request: http::Request<Bytes>,
        times: RequestTimes,
        limit: usize,
    ) -> impl Future<Output = Result<http::Response<Bytes>, RequestError>> + Send + use<> {
        let body = |body| Full::new(body).map_err(|never| match never {}).boxed_unsync();
        let response = self.sending.requests().send(url, request.map(body), times);
        async move {
            let (parts, body) = response.await?.into_parts();
            let body = Limited::new(body, limit).collect().await.map_err(|error| match error
                .downcast::<RequestError>(
            ) {
                Ok(error) => *error,
                Err(_) => RequestError::Protocol(format!(
                    "the body of the response exceeds {}",
                    ByteSize::bytes(limit as u64)
                )),
            })?;
            Ok(http::Response::from_parts(parts, body.to_bytes()))
        }
    }

    /// Takes the refused requests, at most five.
    pub(crate) fn take_refused(&mut self) -> Vec<HttpRefusal> {
        let mut refused =
            self.sending.requests.as_ref().map(Requests::take_refused).unwrap_or_default();
        // The URL of a request may contain the value of a secret, which is then the reason for its
        // refusal.
        for HttpRefusal { reason, missing, .. } in &mut refused {
            self.sending.secrets.mask(reason);
            if let Some(missing) = missing {
                self.sending.secrets.mask(&mut missing.entry);
            }
        }
        refused
    }

    /// Takes the failed connections, at most five.
    pub(crate) fn take_unconnected(&mut self) -> Vec<FailedConnection> {
        let mut unconnected =
            self.sending.requests.as_ref().map(Requests::take_unconnected).unwrap_or_default();
        unconnected.iter_mut().for_each(|failed| self.sending.secrets.mask(&mut failed.reason));
        unconnected
    }

    /// Returns the records of the requests, and the number of further requests without a record.
    pub(crate) fn records(&self) -> (Vec<RequestRecord>, u64) {
        let requests = self.sending.requests.as_ref();
        let (mut records, more) = requests.map(Requests::records).unwrap_or_default();
        // A host name may contain the value of a secret, which is then the reason for its refusal.
        records.iter_mut().for_each(|record| self.sending.secrets.mask(&mut record.origin));
        (records, more)
    }

    /// Returns the refused requests, for the record of the call.
    pub(crate) fn refusals(&self) -> Refusals {
        let mut refusals = Refusals::default();
        let Some(requests) = &self.sending.requests else { return refusals };
        let (refused, more) = requests.refused();
        for RefusedRequest { method, origin, kind, by, times } in refused {
            let target = format!("{method} {origin}").trim_end().to_owned();
            let (key, reason) = (HttpGrant::KEY, kind.as_str());
            refusals.add(Refusal { key, target, reason, by, times });
        }
        refusals.more += more;
        refusals
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings =
            self.sending.requests.as_ref().map(Requests::take_warnings).unwrap_or_default();
        warnings.iter_mut().for_each(|warning| self.sending.secrets.mask(warning));
        warnings
    }
}

impl Sending {
    fn requests(&mut self) -> &Requests {
        let Self { tool, account, grants, client, secrets, limits, requests } = self;
        requests.get_or_insert_with(|| {
            let owner = format!("{tool} {grants:?}");
            let (account, secrets) = (account.clone(), Some(secrets.of_requests()));
            Requests::new(client, owner, account, grants.clone(), *limits, secrets)
        })
    }
}

impl WasiHttpHooks for Sending {
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        let options = options.unwrap_or_default();
        let times = RequestTimes {
            connect: options.connect_timeout,
            first_byte: options.first_byte_timeout,
            between_bytes: options.between_bytes_timeout,
        };
        let url = request.uri().to_string();
        let runtime = Handle::try_current().ok();
        let request = request.map(|body| {
            let sent = SentBody { body: Some(body), runtime };
            sent.map_err(BoxError::from).boxed_unsync()
        });
        let response = self.requests().send(&url, request, times);
        Box::new(async move {
            let response = response.await.map_err(|error| code(error, Side::Request))?;
            let response = response.map(|body: IncomingBody| {
                body.map_err(|error| code(error, Side::Response)).boxed_unsync()
            });
            let nothing: Box<dyn Future<Output = _> + Send> = Box::new(async { Ok(()) });
            Ok((response, nothing))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }

    fn p3_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }
}

/// The body of a request, as the guest writes it. Any part that the client does not read is
/// discarded: a guest that writes or ends its body after the refusal of the request gets an error
/// for the response, not for the body.
struct SentBody {
    /// `None` after the end.
    body: Option<WasiBody>,
    runtime: Option<Handle>,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            this.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for SentBody {
    fn drop(&mut self) {
        if let (Some(mut body), Some(runtime)) = (self.body.take(), &self.runtime)
            && !body.is_end_stream()
        {
            // The task ends when the guest drops its handle.
            runtime.spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Request,
    Response,
}

/// Maps an error to the closest error code of the interface.
fn code(error: RequestError, side: Side) -> Error {
    match error {
        RequestError::Refused(HttpRefusal { kind, .. }) => match (kind, side) {
            (RefusalKind::Address, _) => Error::DestinationIpProhibited,
            (RefusalKind::Size, Side::Request) => Error::HttpRequestBodySize(None),
            (RefusalKind::Size, Side::Response) => Error::HttpResponseBodySize(None),
            (RefusalKind::Time, _) => Error::HttpResponseTimeout,
            _ => Error::HttpRequestDenied,
        },
        RequestError::Name { reason, .. } => {
            Error::DnsError { rcode: Some(reason), info_code: None }
        }
        RequestError::Connect { is_refused: true, .. } => Error::ConnectionRefused,
        RequestError::Connect { .. } | RequestError::Proxy { .. } => Error::DestinationUnavailable,
        RequestError::Tls { is_certificate: true, .. } => Error::TlsCertificateError,
        RequestError::Tls { .. } => Error::TlsProtocolError,
        RequestError::Time(TimePhase::Connect) => Error::ConnectionTimeout,
        RequestError::Time(_) => Error::ConnectionReadTimeout,
        RequestError::Protocol(_) => Error::HttpProtocolError,
        RequestError::Upgrade => Error::HttpUpgradeFailed,
        RequestError::Encoding(encoding) => Error::HttpResponseContentCoding(Some(encoding)),
        RequestError::Ended => Error::ConnectionTerminated,
        RequestError::Internal(message) => Error::InternalError(Some(message)),
    }
}

#[cfg(test)]
mod tests;
