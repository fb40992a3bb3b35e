//! A call that sends requests, as in the host.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kitbag_http::{
    Account, CallLimits, Client, ClientOptions, Nameservers, OutgoingBody, RequestError,
    RequestTimes, Requests, Roots,
};
use kitbag_policy::http::{Deny, HttpGrant, HttpGrants, Methods, RefusalKind, UrlPattern};
use kitbag_test_servers::{Authority, Dns};
use tokio::runtime::{Builder, Runtime};

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// One call and its runtime.
pub(crate) struct Caller {
    pub(crate) requests: Requests,
    pub(crate) runtime: Runtime,
}

/// A request builder.
pub(crate) struct Send<'a> {
    caller: &'a Caller,
    method: &'a str,
    url: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: Option<OutgoingBody>,
    times: RequestTimes,
}

/// Creates a client with this DNS server and this authority.
pub(crate) fn client(dns: Option<&Dns>, authority: Option<&Authority>) -> Client {
    let mut options = ClientOptions::default();
    if let Some(dns) = dns {
        options.nameservers = Nameservers::These(vec![dns.address()]);
    }
    if let Some(authority) = authority {
        options.roots = trusting(authority);
    }
    Client::new(options)
}

pub(crate) fn trusting(authority: &Authority) -> Roots {
    let mut roots = Roots::default();
    roots.add_pem(authority.pem().as_bytes()).unwrap();
    roots
}

/// Grants `GET` and `HEAD`.
pub(crate) fn grant(url: &str) -> HttpGrant {
    HttpGrant::new(UrlPattern::parse(url).unwrap())
}

/// Grants every method.
pub(crate) fn any_method(url: &str) -> HttpGrant {
    HttpGrant { methods: Methods::Any, ..grant(url) }
}

impl Caller {
    pub(crate) fn new(client: &Client, grants: Vec<HttpGrant>) -> Self {
        Self::of("tool", client, HttpGrants::from(grants))
    }

    /// Creates a call whose grants are overridden by a deny list.
    pub(crate) fn denied(client: &Client, grants: Vec<HttpGrant>, deny: &[&str]) -> Self {
        let deny = deny.iter().map(|url| UrlPattern::parse_denied(url).unwrap()).collect();
        let deny = Arc::new(Deny::new(deny));
        Self::of("tool", client, HttpGrants { deny, ..HttpGrants::from(grants) })
    }

    pub(crate) fn of(owner: &str, client: &Client, grants: HttpGrants) -> Self {
        let (account, limits) = (Account::of_tool(owner), CallLimits::default());
        Self::with(Requests::new(client, owner, account, grants, limits, None))
    }

    pub(crate) fn with(requests: Requests) -> Self {
        Self { requests, runtime: Builder::new_current_thread().build().unwrap() }
    }

    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) fn send<'a>(&'a self, method: &'a str, url: &'a str) -> Send<'a> {
        let (headers, times) = (Vec::new(), RequestTimes::default());
        Send { caller: self, method, url, headers, body: None, times }
    }

    pub(crate) fn get(&self, url: &str) -> Result<Got, RequestError> {
        self.send("GET", url).whole()
    }

    /// Returns the kind and the reason of a refusal. Checks that it was recorded for the call's
    /// error.
    pub(crate) fn refused(&self, url: &str) -> (RefusalKind, String) {
        self.send("GET", url).refused()
    }
}

impl<'a> Send<'a> {
    pub(crate) fn header(mut self, name: &'a str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Self {
        let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
        self.stream(body)
    }

    pub(crate) fn stream(mut self, body: OutgoingBody) -> Self {
        self.body = Some(body);
        self
    }

    pub(crate) fn times(mut self, times: RequestTimes) -> Self {
        self.times = times;
        self
    }

    /// Returns the response once it starts.
    pub(crate) fn start(
        self,
    ) -> impl Future<Output = Result<http::Response<kitbag_http::IncomingBody>, RequestError>> + use<>
    {
        let mut request = Request::builder().method(self.method);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let empty = || http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
        let request = request.body(self.body.unwrap_or_else(empty)).unwrap();
        self.caller.requests.send(self.url, request, self.times)
    }

    pub(crate) fn whole(self) -> Result<Got, RequestError> {
        let caller = self.caller;
        let response = self.start();
        caller.wait(async {
            let (parts, body) = response.await?.into_parts();
            let body = body.whole().await?;
            Ok(Got { status: parts.status, headers: parts.headers, body })
        })
    }

    pub(crate) fn refused(self) -> (RefusalKind, String) {
        let caller = self.caller;
        match self.whole() {
            Err(RequestError::Refused(refusal)) => {
                let noted = caller.requests.take_refused();
                assert_eq!(noted.last(), Some(&refusal), "the refusal is recorded");
                (refusal.kind, refusal.reason)
            }
            other => panic!("not refused: {other:?}"),
        }
    }
}
