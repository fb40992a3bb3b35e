//! Requests to authorization servers, and for metadata.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use ipnet::IpNet;
use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use kitbag_http::{Account, CallLimits, Client, OutgoingBody, RequestTimes, Requests};
use kitbag_policy::http::{Deny, Headers, Host, HttpGrant, HttpGrants, HttpRequest, Scheme};
use serde_json::Value;

use super::SignInError;
use super::challenge::Challenge;

/// The longest document or answer, in bytes.
const MOST_BYTES: u64 = 64 << 10;

/// The time of one request.
const TIME: Duration = Duration::from_secs(30);

/// The connections of a sign-in.
#[derive(Clone, Default)]
pub struct Reach {
    /// Sends the requests.
    pub http: Client,
    /// The URLs that no request may reach.
    pub deny: Arc<Deny>,
    /// Blocks of addresses that the host of the MCP server may have in addition to public ones.
    pub addresses: Vec<IpNet>,
}

/// Sends the requests of one sign-in.
pub(crate) struct Exchange {
    reach: Reach,
    /// The URL of the MCP server.
    server: HttpRequest,
}

/// An answer, at most [`MOST_BYTES`] long.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Exchange {
    /// # Errors
    ///
    /// [`SignInError`] if a server may not have this URL.
    pub(crate) fn new(reach: &Reach, server: &str) -> Result<Self, SignInError> {
        let server =
            HttpRequest::read("POST", server).map_err(|refusal| SignInError(refusal.reason))?;
        Ok(Self { reach: reach.clone(), server })
    }

    /// Returns the origin of the MCP server.
    pub(crate) fn origin(&self) -> String {
        self.server.origin_url()
    }

    pub(crate) fn path(&self) -> &str {
        self.server.path()
    }

    /// Checks the URL of an endpoint: `https`, or `http` on this machine if the MCP server is on
    /// this machine. `what` names the endpoint.
    pub(crate) fn check(&self, what: &str, url: &str) -> Result<HttpRequest, SignInError> {
        let request = HttpRequest::new("GET", url)
            .map_err(|refusal| SignInError(format!("{what} is not usable: {}", refusal.reason)))?;
        let is_local = is_loopback(request.host());
        if is_local && !is_loopback(self.server.host()) {
            return Err(SignInError(format!(
                "{what} is refused: `{}` is on this machine, but the server is not",
                shown(url)
            )));
        }
        if request.scheme() != Scheme::Https && !is_local {
            return Err(SignInError(format!("{what} is refused: `{}` is not https", shown(url))));
        }
        if let Host::Address(address) = request.host()
            && !is_local
            && request.host() != self.server.host()
            && is_private(*address)
        {
            let url = shown(url);
            return Err(SignInError(format!("{what} is refused: `{url}` is a private address")));
        }
        Ok(request)
    }

    /// Gets a JSON document. `None`: there is no document at this URL.
    pub(crate) async fn document(
        &self,
        what: &str,
        url: &str,
    ) -> Result<Option<Value>, SignInError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let answer = self.send(what, Method::GET, url, headers, Vec::new()).await?;
        if answer.status.is_client_error() {
            return Ok(None);
        }
        if answer.status != StatusCode::OK {
            return Err(SignInError(format!("{what} has the answer HTTP {}", answer.status)));
        }
        let value = serde_json::from_slice(&answer.body)
            .map_err(|_| SignInError(format!("{what} is not a JSON document")))?;
        Ok(Some(value))
    }

    /// Posts a form. `basic` has a client and its secret.
    pub(crate) async fn form(
        &self,
        what: &str,
        url: &str,
        fields: &[(&str, &str)],
        basic: Option<(&str, &str)>,
    ) -> Result<Answer, SignInError> {
        let form =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some((user, password)) = basic {
            use base64::Engine as _;
            let encoded = |text: &str| -> String {
                url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
            };
            let pair = format!("{}:{}", encoded(user), encoded(password));
            let value = base64::engine::general_purpose::STANDARD.encode(pair);
            let value = HeaderValue::try_from(format!("Basic {value}"));
            headers.insert(header::AUTHORIZATION, value.expect("base64 is valid in a header"));
        }
        self.send(what, Method::POST, url, headers, form.into_bytes()).await
    }

    /// Posts JSON.
    pub(crate) async fn json(
        &self,
        what: &str,
        url: &str,
        value: &Value,
    ) -> Result<Answer, SignInError> {
        let mut headers = HeaderMap::new();
        let kinds = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, kinds);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(what, Method::POST, url, headers, value.to_string().into_bytes()).await
    }

    async fn send(
        &self,
        what: &str,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, SignInError> {
        self.check(what, url)?;
        let failed = |reason: String| SignInError(format!("{what} cannot be used: {reason}"));
        let request =
            HttpRequest::new(method.as_str(), url).map_err(|refusal| failed(refusal.reason))?;
        // No redirect is followed: an answer from elsewhere is not the one of this endpoint.
        let grant = HttpGrant {
            addresses: self.addresses(request.host()),
            headers: Headers::Any,
            max_response: ByteSize::bytes(MOST_BYTES),
            time: Some(TIME),
            follow: 0,
            ..HttpGrant::allowing(&request)
        };
        let grants =
            HttpGrants { grants: vec![Arc::new(grant)], deny: Arc::clone(&self.reach.deny) };
        let limits = CallLimits { requests: 1 };
        let owner = "sign-in";
        let requests =
            Requests::new(&self.reach.http, owner, Account::default(), grants, limits, None);
        let body: OutgoingBody =
            Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        let sent = requests.send(url, request, RequestTimes::default()).await;
        let response = sent.map_err(|error| failed(error.to_string()))?;
        let (parts, body) = response.into_parts();
        if parts.status.is_redirection() {
            return Err(failed("it redirects elsewhere, which is refused".to_owned()));
        }
        let is_event = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let body = match is_event {
            // The answer of an MCP server without sign-in, whose stream need not end.
            true => Vec::new(),
            false => {
                body.collect().await.map_err(|error| failed(error.to_string()))?.to_bytes().into()
            }
        };
        Ok(Answer { status: parts.status, headers: parts.headers, body })
    }

    /// Returns the addresses that a host may have besides those of the public internet.
    fn addresses(&self, host: &Host) -> Vec<IpNet> {
        let own = &self.reach.addresses;
        match host {
            // The person wrote the address of the MCP server.
            Host::Address(address) if host == self.server.host() || is_loopback(host) => {
                vec![IpNet::from(*address)]
            }
            host if host.is_localhost() => {
                ["127.0.0.0/8", "::1/128"].iter().filter_map(|net| net.parse().ok()).collect()
            }
            host if host == self.server.host() => own.clone(),
            _ => Vec::new(),
        }
    }
}

impl Answer {
    pub(crate) fn challenge(&self) -> Option<Challenge> {
        Challenge::of(&self.headers)
    }

    /// Returns the JSON of a successful answer, or an error with the code of the server.
    pub(crate) fn success(&self, what: &str) -> Result<Value, OAuthError> {
        let value: Option<Value> = serde_json::from_slice(&self.body).ok();
        if self.status.is_success() {
            let message = format!("{what} sent an answer that is not JSON");
            return value.ok_or(OAuthError { code: None, message });
        }
        let code = value.as_ref().and_then(|value| value["error"].as_str());
        let code = code.filter(|code| super::challenge::is_scope(code)).map(str::to_owned);
        // A description is text of the server, and could repeat a code or token.
        let message = match &code {
            Some(code) => format!("{what} answered `{code}` (HTTP {})", self.status),
            None => format!("{what} has the answer HTTP {}", self.status),
        };
        Err(OAuthError { code, message })
    }
}

/// An error of an authorization server.
pub(crate) struct OAuthError {
    pub(crate) code: Option<String>,
    pub(crate) message: String,
}

impl From<OAuthError> for SignInError {
    fn from(error: OAuthError) -> Self {
        Self(error.message)
    }
}

pub(crate) fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Address(address) => address.to_canonical().is_loopback(),
        host @ Host::Name(_) => host.is_localhost(),
    }
}

/// Returns true for common private addresses, for a clear error. The connections decide.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_private() || address.is_link_local() || address.is_unspecified()
        }
        IpAddr::V6(address) => {
            address.is_unique_local() || address.is_unicast_link_local() || address.is_unspecified()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_public_and_encrypted() {
        let check = |server: &str, url: &str, expected: Result<(), &str>| {
            let exchange = Exchange::new(&Reach::default(), server).unwrap();
            let checked = exchange.check("the token endpoint", url).map(|_| ());
            let checked = checked.map_err(|error| error.to_string());
            assert_eq!(checked, expected.map_err(|error| format!("the token endpoint is {error}")));
        };
        let public = "https://mcp.example.com/mcp";
        check(public, "https://auth.example.com/token", Ok(()));
        check(
            public,
            "http://auth.example.com/token",
            Err("refused: `http://auth.example.com/token` is not https"),
        );
        check(
            public,
            "https://127.0.0.1/token",
            Err("refused: `https://127.0.0.1/token` is on this machine, but the server is not"),
        );
        check(
            public,
            "https://localhost/token",
            Err("refused: `https://localhost/token` is on this machine, but the server is not"),
        );
        check(
            public,
            "https://10.0.0.1/token",
            Err("refused: `https://10.0.0.1/token` is a private address"),
        );
        check(
            public,
            "https://169.254.169.254/token",
            Err("refused: `https://169.254.169.254/token` is a private address"),
        );
        check("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/token", Ok(()));
        check(
            "http://127.0.0.1:1/mcp",
            "http://192.168.0.1/token",
            Err("refused: `http://192.168.0.1/token` is not https"),
        );
        check("https://10.0.0.1/mcp", "https://10.0.0.1/token", Ok(()));
    }
}
