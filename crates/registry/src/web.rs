//! Requests to one registry, and bounded answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use kitbag_http::{
    Account, CallLimits, Client, OutgoingBody, RequestError, RequestTimes, Requests,
};
use kitbag_policy::http::{
    Headers, Host, HttpGrant, HttpGrants, HttpRequest, Methods, RefusalKind, UrlPattern,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::reference::UrlReference;
use crate::registry::{ANSWER_BYTES, Access, check_digest};

/// The time for one request, with its redirects and its body.
const TIME: Duration = Duration::from_secs(600);

/// The time until a connection is open, and between two parts of an answer.
const CONNECT: Duration = Duration::from_secs(15);
const BETWEEN: Duration = Duration::from_secs(60);

/// The most redirects of one request. Registries redirect blobs to the servers that store them.
const REDIRECTS: u8 = 5;

/// Some registries refuse requests without a name of the program.
const USER_AGENT: &str = concat!("kitbag/", env!("CARGO_PKG_VERSION"));

/// The most requests of one command.
const REQUESTS: u64 = 10_000;

/// The longest message of a registry that is shown.
const MESSAGE_BYTES: usize = 300;

/// Sends requests to registries. Each request has grants for its registry only.
pub struct Web {
    client: Client,
    runtime: Runtime,
    access: Box<dyn Fn(&str) -> Access>,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) url: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The digest of the body.
    pub(crate) digest: Sha256Digest,
    /// The host that the registry redirected to.
    pub(crate) redirected_to: Option<String>,
}

/// A request before it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: &'a str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<Bytes>,
    /// The largest body of a successful answer.
    pub(crate) limit: u64,
}

impl Web {
    /// Creates the connections, over a client with the user's proxies and root certificates.
    /// `access` returns the access to a host, or to a repository or path of a host.
    ///
    /// # Errors
    ///
    /// The error of the system if no runtime can be started.
    pub fn new(client: Client, access: impl Fn(&str) -> Access + 'static) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().build()?;
        Ok(Self { client, runtime, access: Box::new(access) })
    }

    /// Returns the access to a host, or to a repository or path of a host.
    pub(crate) fn access(&self, name: &str) -> Access {
        (self.access)(name)
    }

    /// Sends a `GET` request to a host, without credentials, and follows redirects.
    pub(crate) fn get(
        &self,
        url: &str,
        host: &str,
        access: Access,
        limit: u64,
    ) -> Result<Answer, RegistryError> {
        let outgoing = Outgoing { method: "GET", url, headers: Vec::new(), body: None, limit };
        let answer = self.send(outgoing.clone(), host, access)?;
        self.follow(answer, &outgoing)
    }

    /// Follows the redirects of an answer. The request must have no credentials, since its header
    /// fields are sent again.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Redirect`] for a server without TLS, on this machine or in a private
    /// network, unless the user config allows its host.
    pub(crate) fn follow(
        &self,
        mut answer: Answer,
        outgoing: &Outgoing<'_>,
    ) -> Result<Answer, RegistryError> {
        let from = outgoing.url;
        let mut base = Url::parse(from).map_err(|error| RegistryError::invalid(from, error))?;
        let mut followed = 0;
        while answer.is_redirect() {
            if followed == REDIRECTS {
                let problem = format!("it redirects more than {REDIRECTS} times");
                return Err(RegistryError::invalid(from, problem));
            }
            followed += 1;
            let target = answer.header("location").and_then(|location| base.join(location).ok());
            let target = target.ok_or_else(|| {
                RegistryError::invalid(from, "it redirects to something that is not a URL")
            })?;
            let refused = |reason: String| {
                let target = target[..url::Position::AfterPath].to_owned();
                RegistryError::Redirect { url: from.to_owned(), target, reason }
            };
            let host = &target[url::Position::BeforeHost..url::Position::AfterPort];
            let access = self.access(host);
            let is_allowed = match target.scheme() {
                "https" => true,
                "http" => access.is_plain,
                _ => false,
            };
            if !is_allowed || !target.username().is_empty() || target.password().is_some() {
                return Err(refused("which is not a plain `https` URL".to_owned()));
            }
            let next = Outgoing { url: target.as_str(), ..outgoing.clone() };
            let access = Access { is_plain: target.scheme() == "http", ..access };
            answer = self.send(next, host, access).map_err(|error| match error {
                RegistryError::Private { host } => refused(format!(
                    "which is on this machine or in a private network; if you trust it, write \
                     `private = true` into `[registries.\"{host}\"]` of your user config"
                )),
                error => error,
            })?;
            // The target may contain a signature that grants access.
            answer.url = from.to_owned();
            answer.redirected_to = Some(host.to_owned());
            base = target;
        }
        Ok(answer)
    }

    /// Reads the component at a URL.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if the component does not have the digest in the reference.
    pub fn component(&self, of: &UrlReference, limit: ByteSize) -> Result<Bytes, RegistryError> {
        let (host, access) = (of.host(), self.access(&of.name()));
        let answer = self.get(&of.url, &host, access, limit.as_u64())?.success(&host)?;
        check_digest(&answer, of.digest)?;
        Ok(answer.body)
    }

    /// Sends a request and reads the whole answer, which may be a redirect. `host` is the only one that may be on this
    /// machine or in a private network, and only if `access` allows it.
    pub(crate) fn send(
        &self,
        outgoing: Outgoing<'_>,
        host: &str,
        access: Access,
    ) -> Result<Answer, RegistryError> {
        let Outgoing { method, url, headers, body, limit } = outgoing;
        let large = || {
            let problem = format!("is larger than {}", ByteSize::bytes(limit));
            RegistryError::Size { url: url.to_owned(), problem }
        };
        let failed = |error: RequestError| match error {
            RequestError::Refused(refusal) if refusal.kind == RefusalKind::Size => large(),
            error => RegistryError::request(url, host, error),
        };
        let target = HttpRequest::new(method, url).map_err(|error| failed(error.into()))?;
        check_private(target.host(), host, access)?;
        let sent = body.as_ref().map_or(0, Bytes::len) as u64;
        // Redirects and errors have text, also in answers to requests for small content.
        let most = limit.max(ANSWER_BYTES);
        let grants = grants(host, access, (most, sent))
            .ok_or_else(|| RegistryError::invalid(url, "the host is not valid"))?;
        let (limits, account) = (CallLimits { requests: REQUESTS }, Account::of_tool("registry"));
        // Each host has its own connections.
        let owner: Arc<str> = format!("registry {host}").into();
        let requests = Requests::new(&self.client, owner, account, grants, limits, None);
        let mut request = Request::builder().method(method).header("user-agent", USER_AGENT);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let body: OutgoingBody = match body {
            Some(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
            None => http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync(),
        };
        let request = request.body(body).map_err(|error| RegistryError::invalid(url, error))?;
        let times =
            RequestTimes { connect: Some(CONNECT), first_byte: None, between_bytes: Some(BETWEEN) };
        self.runtime.block_on(async {
            let response = requests.send(url, request, times).await.map_err(failed)?;
            let (parts, mut body) = response.into_parts();
            let most = if parts.status.is_success() { limit } else { most };
            let (mut bytes, mut hash) = (Vec::new(), Sha256::new());
            // An answer to `HEAD` has no body.
            while method != "HEAD"
                && let Some(frame) = body.frame().await
            {
                let frame = frame.map_err(failed)?;
                let Some(data) = frame.data_ref() else { continue };
                if bytes.len() as u64 + data.len() as u64 > most {
                    return Err(large());
                }
                hash.update(data);
                bytes.extend_from_slice(data);
            }
            Ok(Answer {
                url: url.to_owned(),
                status: parts.status,
                headers: parts.headers,
                body: bytes.into(),
                digest: Sha256Digest(hash.finalize().into()),
                redirected_to: None,
            })
        })
    }
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Web(…)")
    }
}

impl Answer {
    /// Returns a header field as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns true if the content is at another URL. Other answers of the class 3xx have no URL.
    pub(crate) fn is_redirect(&self) -> bool {
        matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308)
    }

    /// Returns the answer if its status is a success.
    pub(crate) fn success(self, host: &str) -> Result<Self, RegistryError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let (url, details) = (self.url.clone(), self.details());
        if let Some(target) = &self.redirected_to {
            let details = format!(" of `{target}`, to which it redirects{details}");
            return Err(RegistryError::Status { url, status: self.status.as_u16(), details });
        }
        Err(match self.status {
            StatusCode::NOT_FOUND => RegistryError::NotFound { url, details },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                RegistryError::Denied { host: host.to_owned(), url, details }
            }
            status => RegistryError::Status { url, status: status.as_u16(), details },
        })
    }

    /// Returns the first message of an error, with a separator.
    fn details(&self) -> String {
        #[derive(Deserialize)]
        struct Errors {
            errors: Vec<Message>,
        }
        #[derive(Deserialize)]
        struct Message {
            message: Option<String>,
        }
        let errors = serde_json::from_slice::<Errors>(&self.body).ok();
        let first = errors.and_then(|errors| errors.errors.into_iter().next()?.message);
        let mut text = first.unwrap_or_default();
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES));
        if text.is_empty() { text } else { format!(": {}", shown(&text)) }
    }
}

/// Refuses a host that is known to be private before anything is sent.
fn check_private(target: &Host, host: &str, access: Access) -> Result<(), RegistryError> {
    let is_private = match target {
        Host::Address(address) => !kitbag_policy::addresses::is_global(*address),
        Host::Name(_) => target.is_localhost(),
    };
    match is_private && !access.is_private {
        true => Err(RegistryError::Private { host: host.to_owned() }),
        false => Ok(()),
    }
}

/// Returns the grants of one request: everything at one host.
fn grants(host: &str, access: Access, (limit, sent): (u64, u64)) -> Option<HttpGrants> {
    let url = UrlPattern::parse(&format!("{}://{host}/**", access.scheme())).ok()?;
    let any = "0.0.0.0/0".parse().ok().into_iter().chain("::/0".parse().ok());
    let grant = HttpGrant {
        follow: 0,
        encoded_slash: true,
        headers: Headers::Any,
        methods: Methods::Any,
        addresses: if access.is_private { any.collect() } else { Vec::new() },
        max_response: ByteSize::bytes(limit),
        max_request: ByteSize::bytes(sent),
        time: Some(TIME),
        ..HttpGrant::new(url)
    };
    Some(HttpGrants::from(vec![grant]))
}
