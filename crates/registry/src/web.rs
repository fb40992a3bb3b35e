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
use kitbag_policy::http::{Headers, Host, HttpGrant, HttpGrants, HttpRequest, Methods, UrlPattern};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::runtime::{Builder, Runtime};

use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::reference::UrlReference;
use crate::registry::{Access, check_digest};

/// The time for one request, with its redirects and its body.
const TIME: Duration = Duration::from_secs(600);

/// The time until a connection is open, and between two parts of an answer.
const CONNECT: Duration = Duration::from_secs(15);
const BETWEEN: Duration = Duration::from_secs(60);

/// The most redirects of one request. Registries redirect blobs to the servers that store them.
const REDIRECTS: u8 = 5;

/// The most requests of one command.
const REQUESTS: u64 = 10_000;

/// The longest message of a registry that is shown.
const MESSAGE_BYTES: usize = 300;

/// Sends requests to registries. Each request has grants for its registry only.
#[derive(Debug)]
pub struct Web {
    client: Client,
    runtime: Runtime,
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
}

/// A request before it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: &'a str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<Bytes>,
    /// The largest body of the answer.
    pub(crate) limit: u64,
    /// True if redirects are followed. Otherwise the answer is the redirect.
    pub(crate) follows: bool,
}

impl Web {
    /// Creates the connections, over a client with the user's proxies and root certificates.
    ///
    /// # Errors
    ///
    /// The error of the system if no runtime can be started.
    pub fn new(client: Client) -> std::io::Result<Self> {
        Ok(Self { client, runtime: Builder::new_current_thread().build()? })
    }

    /// Sends a `GET` request to a host, without credentials.
    pub(crate) fn get(
        &self,
        url: &str,
        host: &str,
        access: Access,
        limit: u64,
    ) -> Result<Answer, RegistryError> {
        let outgoing =
            Outgoing { method: "GET", url, headers: Vec::new(), body: None, limit, follows: true };
        self.send(outgoing, host, access)
    }

    /// Reads the component at a URL.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if the component does not have the digest in the reference.
    pub fn component(
        &self,
        of: &UrlReference,
        access: Access,
        limit: ByteSize,
    ) -> Result<Bytes, RegistryError> {
        let host = of.host();
        let answer = self.get(&of.url, &host, access, limit.as_u64())?.success(&host)?;
        check_digest(&answer, of.digest)?;
        Ok(answer.body)
    }

    /// Sends a request and reads the whole answer. `host` is the only one that may be on this
    /// machine or in a private network, and only if `access` allows it.
    pub(crate) fn send(
        &self,
        outgoing: Outgoing<'_>,
        host: &str,
        access: Access,
    ) -> Result<Answer, RegistryError> {
        let Outgoing { method, url, headers, body, limit, follows } = outgoing;
        let failed = |error: RequestError| RegistryError::request(url, host, error);
        let target = HttpRequest::new(method, url).map_err(|error| failed(error.into()))?;
        check_private(target.host(), host, access)?;
        let sent = body.as_ref().map_or(0, Bytes::len) as u64;
        let follow = if follows { REDIRECTS } else { 0 };
        let grants = grants(host, access, (limit, sent), follow)
            .ok_or_else(|| RegistryError::invalid(url, "the host is not valid"))?;
        let (limits, account) = (CallLimits { requests: REQUESTS }, Account::of_tool("registry"));
        // Each host has its own connections.
        let owner: Arc<str> = format!("registry {host}").into();
        let requests = Requests::new(&self.client, owner, account, grants, limits, None);
        let mut request = Request::builder().method(method);
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
            let (mut bytes, mut hash) = (Vec::new(), Sha256::new());
            // An answer to `HEAD` has no body.
            while method != "HEAD"
                && let Some(frame) = body.frame().await
            {
                let frame = frame.map_err(failed)?;
                let Some(data) = frame.data_ref() else { continue };
                if bytes.len() as u64 + data.len() as u64 > limit {
                    let problem = format!("is larger than {}", ByteSize::bytes(limit));
                    return Err(RegistryError::Size { url: url.to_owned(), problem });
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
            })
        })
    }
}

impl Answer {
    /// Returns a header field as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the answer if its status is a success.
    pub(crate) fn success(self, host: &str) -> Result<Self, RegistryError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let (url, details) = (self.url.clone(), self.details());
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

/// Returns the grants of one request: everything at the registry, and reading from any public host
/// that it redirects to.
fn grants(host: &str, access: Access, (limit, sent): (u64, u64), follow: u8) -> Option<HttpGrants> {
    let common = |pattern: &str| {
        let url = UrlPattern::parse(pattern).ok()?;
        Some(HttpGrant {
            follow,
            encoded_slash: true,
            headers: Headers::Any,
            max_response: ByteSize::bytes(limit),
            max_request: ByteSize::bytes(sent),
            time: Some(TIME),
            ..HttpGrant::new(url)
        })
    };
    let own = common(&format!("{}://{host}/**", access.scheme()))?;
    let any = "0.0.0.0/0".parse().ok().into_iter().chain("::/0".parse().ok());
    let addresses = if access.is_private { any.collect() } else { Vec::new() };
    let own = HttpGrant { methods: Methods::Any, addresses, ..own };
    Some(HttpGrants::from(vec![own, common("https://*/**")?]))
}
