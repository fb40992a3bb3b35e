//! HTTP: the requests that a tool may send to servers.
//!
//! A request is decided on in steps as more of it becomes known: [`HttpGrants::decide`] checks its
//! method and URL, then [`AllowedRequest`] checks the addresses of the host, header fields, sizes,
//! time and redirects. A single grant must allow the whole request; grants are not combined.

mod deny;
mod direct;
pub(crate) mod glob;
mod grant;
mod headers;
mod host;
pub(crate) mod lenient;
mod method;
pub(crate) mod path;
mod pattern;
mod proxy;
mod refusal;
mod request;
mod risk;
mod scheme;

pub use deny::Deny;
pub use direct::{Direct, DirectError};
pub use grant::{HttpGrant, MAX_FOLLOW};
pub use headers::{HeaderError, Headers};
pub use host::{Host, HostError, HostPattern};
pub use method::{Method, MethodError, Methods};
pub use path::PathError;
pub use pattern::{UrlPattern, UrlPatternError, UrlPatternProblem};
pub use proxy::{Proxy, ProxyError, ProxyRules};
pub use refusal::{HttpRefusal, RefusalKind};
pub use request::{HttpRequest, MAX_URL_BYTES};
pub use scheme::Scheme;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use kitbag_base::ByteSize;
use kitbag_base::format_duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Grants;
use crate::consent::{Ability, GrantText, Risk, Surroundings};
use crate::decision::{Decision, MissingGrant};
use crate::kind::{Effects, GrantForm, Kind, KindInfo, KindRequest, RefusalWords};

/// Permitted requests, and requests that are denied to all tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpGrants {
    /// The grants in their given order.
    pub grants: Vec<Arc<HttpGrant>>,
    /// Denied URLs, which override every grant.
    pub deny: Arc<Deny>,
}

/// A request that some grants allow in its known parts. Each step keeps the grants that allow the step and
/// refuses the request if none is left.
#[derive(Clone, Debug)]
pub struct AllowedRequest {
    request: HttpRequest,
    /// Never empty.
    grants: Vec<Arc<HttpGrant>>,
    deny: Arc<Deny>,
}

/// Servers that a tool requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestedHttp {
    /// `GET` and `HEAD` for a URL pattern.
    Url(String),
    /// A URL pattern with other methods.
    With {
        /// The pattern.
        url: String,
        /// The methods.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        methods: Vec<String>,
    },
}

impl HttpGrants {
    /// Decides on a request by its method and URL.
    ///
    /// # Errors
    ///
    /// [`HttpRefusal`] refers to the grant that is closest to the request.
    pub fn decide(&self, request: &HttpRequest) -> Result<AllowedRequest, HttpRefusal> {
        self.deny.check(request)?;
        let allowing = self.grants.iter().filter(|grant| grant.allows(request));
        let grants: Vec<_> = allowing.cloned().collect();
        if grants.is_empty() {
            return Err(self.refuse(request));
        }
        Ok(AllowedRequest { request: request.clone(), grants, deny: Arc::clone(&self.deny) })
    }

    fn refuse(&self, request: &HttpRequest) -> HttpRefusal {
        let nearest =
            self.grants.iter().map(|grant| nearness(grant, request)).max_by_key(|at| at.0);
        let (_, kind, what) = nearest.unwrap_or((0, RefusalKind::Host, "host"));
        let reason = format!("no `http` grant allows `{request}`: its {what} is not granted");
        let mut requested = HttpGrant::allowing(request);
        // A grant that lists addresses for the server restricts it to them.
        let of_server = |grant: &&Arc<HttpGrant>| {
            grant.url.host().matches(request.host()) && grant.url.port() == request.port()
        };
        if let Some(grant) = self.grants.iter().find(of_server) {
            requested.addresses.clone_from(&grant.addresses);
        }
        let missing = Some(missing(&requested));
        HttpRefusal { missing, ..HttpRefusal::new(kind, reason) }
    }

    /// Returns the first of these grants that `own` does not cover, and the field that exceeds the
    /// grant of `own` with the same URL, if any.
    pub fn beyond(&self, own: &[Arc<HttpGrant>]) -> Option<(Arc<HttpGrant>, &'static str)> {
        self.grants.iter().find_map(|grant| {
            let field = is_held(grant, own).err()?;
            Some((Arc::clone(grant), field))
        })
    }
}

/// Checks that `own` covers a grant. Different grants may cover different methods.
fn is_held(grant: &HttpGrant, own: &[Arc<HttpGrant>]) -> Result<(), &'static str> {
    let covered = |grant: &HttpGrant| {
        let mut furthest = "url";
        for own in own {
            match own.holds(grant) {
                Ok(()) => return Ok(()),
                Err("url") => {}
                Err(field) => furthest = field,
            }
        }
        Err(furthest)
    };
    match &grant.methods {
        Methods::Any => covered(grant),
        Methods::These(methods) => methods.iter().try_for_each(|method| {
            let methods = Methods::These([method.clone()].into());
            covered(&HttpGrant { methods, ..grant.clone() })
        }),
    }
}

/// Returns how closely a grant matches a request, and the part of the request that it does not
/// allow.
fn nearness(grant: &HttpGrant, request: &HttpRequest) -> (u8, RefusalKind, &'static str) {
    if !grant.url.host().matches(request.host()) {
        (0, RefusalKind::Host, "host")
    } else if grant.url.scheme() != request.scheme() {
        (1, RefusalKind::Scheme, "scheme")
    } else if grant.url.port() != request.port() {
        (2, RefusalKind::Host, "port")
    } else if !grant.url.matches_path(request) {
        (3, RefusalKind::Path, "path")
    } else if !grant.encoded_slash && request.segments().has_encoded_slash() {
        (4, RefusalKind::Path, "encoded slash")
    } else if !grant.methods.has(request.method()) {
        (5, RefusalKind::Method, "method")
    } else {
        (6, RefusalKind::Address, "address")
    }
}

fn missing(grant: &HttpGrant) -> MissingGrant {
    MissingGrant::of_list(HttpGrant::KEY, grant.as_entry())
}

impl AllowedRequest {
    /// Returns the request.
    pub fn request(&self) -> &HttpRequest {
        &self.request
    }

    /// Returns the grant that allows the request.
    pub fn by(&self) -> &HttpGrant {
        &self.grants[0]
    }

    /// Keeps the grants that allow a step. If none does, `widened` turns one of them into a grant
    /// that would.
    fn keep(
        &mut self,
        kind: RefusalKind,
        reason: impl FnOnce(&Self) -> String,
        allows: impl Fn(&HttpGrant) -> bool,
        widened: impl FnOnce(HttpGrant) -> Option<HttpGrant>,
    ) -> Result<(), HttpRefusal> {
        if self.grants.iter().any(|grant| allows(grant)) {
            self.grants.retain(|grant| allows(grant));
            return Ok(());
        }
        let missing = widened(self.by().clone()).as_ref().map(missing);
        Err(HttpRefusal { missing, ..HttpRefusal::new(kind, reason(self)) })
    }

    /// Decides by the host's addresses. All of them must be permitted, and only these addresses may
    /// be connected to.
    ///
    /// # Errors
    ///
    /// [`RefusalKind::Address`].
    pub fn addresses(&mut self, addresses: &[IpAddr]) -> Result<(), HttpRefusal> {
        let request = self.request.clone();
        if addresses.is_empty() {
            let reason = format!("host `{}` has no address", request.host());
            return Err(HttpRefusal::new(RefusalKind::Address, reason));
        }
        self.deny.check_addresses(&request, addresses)?;
        let opens = |grant: &HttpGrant, address: &IpAddr| grant.opens(request.host(), *address);
        let closed: Vec<_> = {
            let by = self.by();
            let closed = addresses.iter().filter(|address| !opens(by, address));
            closed.map(|address| address.to_canonical()).collect()
        };
        let reason = |this: &Self| {
            let closed: Vec<_> = closed.iter().map(IpAddr::to_string).collect();
            format!(
                "host `{}` has the address {}, which is not on the public internet and which no \
                 grant names",
                this.request.host(),
                closed.join(", ")
            )
        };
        let allows = |grant: &HttpGrant| addresses.iter().all(|address| opens(grant, address));
        self.keep(RefusalKind::Address, reason, allows, |mut grant| {
            grant.addresses.extend(closed.iter().copied().map(IpNet::from));
            Some(grant)
        })
    }

    /// Decides whether a proxy may resolve the host, so that its addresses are not checked. Only
    /// grants that name the host or a parent domain allow this, and none if addresses are denied.
    /// If this returns false, [`addresses`](Self::addresses) decides.
    pub fn unresolved(&mut self) -> bool {
        let names = |grant: &Arc<HttpGrant>| grant.url.host().is_of_names();
        let host = self.request.host();
        let is_name = matches!(host, Host::Name(_)) && !host.is_localhost();
        if !is_name || self.deny.has_addresses() || !self.grants.iter().any(names) {
            return false;
        }
        self.grants.retain(names);
        true
    }

    /// Decides by the names of all header fields that the tool sends, also for redirects.
    ///
    /// # Errors
    ///
    /// [`RefusalKind::Header`].
    pub fn headers<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), HttpRefusal> {
        let names: Vec<_> = names.into_iter().collect();
        let refused = names.iter().copied().find(|name| !self.by().headers.has(name));
        let reason = |this: &Self| {
            let refused = kitbag_base::text::shown(refused.unwrap_or_default()).to_string();
            format!("`{}` is refused: header field `{refused}` is not granted", this.request)
        };
        let allows = |grant: &HttpGrant| names.iter().all(|name| grant.headers.has(name));
        self.keep(RefusalKind::Header, reason, allows, |grant| {
            let headers = Headers::for_all(&names).ok()?;
            Some(HttpGrant { headers, ..grant })
        })
    }

    /// Decides by the number of bytes of the request's body that were sent.
    ///
    /// # Errors
    ///
    /// [`RefusalKind::Size`].
    pub fn request_bytes(&mut self, bytes: u64) -> Result<(), HttpRefusal> {
        let reason = |this: &Self| {
            format!("the body of `{}` is larger than {}", this.request, this.max_request())
        };
        let allows = |grant: &HttpGrant| grant.max_request.as_u64() >= bytes;
        self.keep(RefusalKind::Size, reason, allows, |grant| {
            Some(HttpGrant { max_request: at_least(bytes), ..grant })
        })
    }

    /// Decides by the number of bytes of the response's body that were received.
    ///
    /// # Errors
    ///
    /// [`RefusalKind::Size`].
    pub fn response_bytes(&mut self, bytes: u64) -> Result<(), HttpRefusal> {
        let reason = |this: &Self| {
            format!("the response to `{}` is larger than {}", this.request, this.max_response())
        };
        let allows = |grant: &HttpGrant| grant.max_response.as_u64() >= bytes;
        self.keep(RefusalKind::Size, reason, allows, |grant| {
            Some(HttpGrant { max_response: at_least(bytes), ..grant })
        })
    }

    /// Decides by the time since the start of the request.
    ///
    /// # Errors
    ///
    /// [`RefusalKind::Time`].
    pub fn elapsed(&mut self, elapsed: Duration) -> Result<(), HttpRefusal> {
        let reason = |this: &Self| {
            let time = this.time().map(|time| format_duration(time).to_string());
            format!("`{}` took longer than {}", this.request, time.unwrap_or_default())
        };
        let allows = |grant: &HttpGrant| grant.time.is_none_or(|time| time >= elapsed);
        self.keep(RefusalKind::Time, reason, allows, |grant| {
            let time = grant.time.map(|time| time.saturating_mul(2).max(elapsed));
            Some(HttpGrant { time, ..grant })
        })
    }

    /// Returns true if the host follows another redirect after `followed` redirects. Otherwise the
    /// tool receives the redirect. [`HttpGrants::decide`] decides on the next hop.
    pub fn follows(&mut self, followed: u8) -> bool {
        let follows = |grant: &Arc<HttpGrant>| grant.follow > followed;
        if !self.grants.iter().any(follows) {
            return false;
        }
        self.grants.retain(follows);
        true
    }

    /// Returns the largest body of the request.
    pub fn max_request(&self) -> ByteSize {
        self.grants.iter().map(|grant| grant.max_request).max().unwrap_or_default()
    }

    /// Returns the largest body of the response.
    pub fn max_response(&self) -> ByteSize {
        self.grants.iter().map(|grant| grant.max_response).max().unwrap_or_default()
    }

    /// Returns the time limit. `None`: the remaining time of the call.
    pub fn time(&self) -> Option<Duration> {
        let times = self.grants.iter().map(|grant| grant.time).collect::<Option<Vec<_>>>()?;
        times.into_iter().max()
    }
}

/// Rounds a number of bytes up to whole MiB.
fn at_least(bytes: u64) -> ByteSize {
    ByteSize::mib(bytes.div_ceil(1 << 20))
}

/// The words for a tool that can reach no other machine.
pub const NO_NETWORK: &str = "no network";

/// The kind of these grants.
pub(crate) const KIND: KindInfo = KindInfo {
    absent: Some(NO_NETWORK),
    imports: Some("wasi:http/"),
    refusals: Some(RefusalWords {
        kind: "http",
        access: "send {}",
        reasons: &[
            ("scheme", "the scheme is not granted"),
            ("host", "the host is not granted"),
            ("address", "the address of the host is not granted"),
            ("path", "the path is not granted"),
            ("method", "the method is not granted"),
            ("header", "a header is not granted"),
            ("size", "it is larger than granted"),
            ("rate", "too many requests"),
            ("time", "it takes longer than granted"),
            ("leak", "it contains what looks like a key or a token"),
            ("secret", "it would reveal a secret"),
            ("unreadable", "a required secret cannot be read"),
        ],
    }),
    ..KindInfo::new(HttpGrant::KEY, "requests", GrantForm::List)
};

impl Kind for HttpGrants {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn is_empty(&self) -> bool {
        self.grants.is_empty()
    }

    fn effects(&self) -> Effects {
        let changes = self.grants.iter().any(|grant| grant.methods.has_unsafe());
        Effects { changes, open_world: !self.grants.is_empty() }
    }

    fn lines(&self) -> Vec<String> {
        self.grants.iter().map(|grant| grant.to_string()).collect()
    }

    fn brief(&self) -> Vec<String> {
        self.grants.iter().map(|grant| grant.brief()).collect()
    }

    fn to_json(&self) -> Value {
        self.grants.iter().map(|grant| grant.to_json()).collect()
    }

    fn uncovered(&self, own: &Grants) -> Option<String> {
        self.beyond(&own.http.grants).map(|(grant, _)| grant.to_string())
    }

    fn singles(&self) -> Vec<Grants> {
        let single = |grant: &Arc<HttpGrant>| Grants {
            http: Self { grants: vec![Arc::clone(grant)], ..Self::default() },
            ..Grants::default()
        };
        self.grants.iter().map(single).collect()
    }

    fn as_ceiling(&self) -> Option<String> {
        let entries: Vec<_> = self.grants.iter().map(|grant| grant.as_entry()).collect();
        Some(format!("{} = [{}]", HttpGrant::KEY, entries.join(", ")))
    }

    fn texts(&self, around: &Surroundings<'_>) -> Vec<GrantText> {
        let text = |grant: &Arc<HttpGrant>| {
            let risks = risk::risks(grant, around.proxy_resolves);
            GrantText::new(format!("sends requests: {grant}"), Some(Ability::Network), risks)
        };
        self.grants.iter().map(text).collect()
    }
}

impl KindRequest for HttpRequest {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn decide(&self, grants: &Grants) -> Decision {
        decide(&grants.http, self)
    }

    fn brief(&self) -> String {
        let verb = if self.method().is_safe() { "reads" } else { "sends to" };
        format!("{verb} {}", self.origin_url())
    }

    fn consent(&self, _: bool) -> (Option<Ability>, Vec<Risk>) {
        (Some(Ability::Network), Vec::new())
    }
}

impl KindRequest for HttpGrant {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn decide(&self, grants: &Grants) -> Decision {
        decide_all(&grants.http, self)
    }

    fn brief(&self) -> String {
        let verb = if self.methods.has_unsafe() { "sends to" } else { "reads" };
        format!("{verb} {}", self.url)
    }

    fn consent(&self, by_proxy: bool) -> (Option<Ability>, Vec<Risk>) {
        (Some(Ability::Network), risk::risks(self, by_proxy))
    }
}

impl RequestedHttp {
    /// Converts to a grant. `None` if it cannot be granted.
    pub fn grant(&self) -> Option<HttpGrant> {
        let (url, methods) = match self {
            Self::Url(url) => (url, [].as_slice()),
            Self::With { url, methods } => (url, methods.as_slice()),
        };
        let mut grant = HttpGrant::new(url.parse().ok()?);
        if !methods.is_empty() {
            grant.methods = Methods::new(methods.iter().map(String::as_str)).ok()?;
        }
        grant.encoded_slash = grant.url.needs_encoded_slash();
        Some(grant)
    }
}

impl From<Vec<HttpGrant>> for HttpGrants {
    /// Creates grants without denied URLs.
    fn from(grants: Vec<HttpGrant>) -> Self {
        Self { grants: grants.into_iter().map(Arc::new).collect(), deny: Arc::default() }
    }
}

/// Decides on a request by its method and URL.
pub fn decide(grants: &HttpGrants, request: &HttpRequest) -> Decision {
    match grants.decide(request) {
        Ok(allowed) => Decision::Allowed { by: allowed.by().to_string() },
        Err(HttpRefusal { reason, missing, .. }) => Decision::Denied { reason, missing },
    }
}

/// Decides on everything that another set of grants allows.
pub fn decide_all(grants: &HttpGrants, requested: &HttpGrant) -> Decision {
    match is_held(requested, &grants.grants) {
        Ok(()) => Decision::Allowed { by: requested.to_string() },
        Err(field) => Decision::Denied {
            reason: format!("no `http` grant covers `{requested}`: its `{field}` is not granted"),
            missing: Some(missing(requested)),
        },
    }
}
