//! The headers of a request.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Request};
use rmcp::model::ProtocolVersion;

/// The header with the protocol version.
const VERSION: &str = "mcp-protocol-version";

/// Returns the token in an `Authorization` header.
pub(super) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
}

/// Explains why the host or the origin of a request is ambiguous: a proxy could use a different
/// value than this check.
pub(super) fn ambiguity<B>(request: &Request<B>) -> Option<&'static str> {
    let is_repeated = |name| request.headers().get_all(name).iter().nth(1).is_some();
    if is_repeated(HOST) {
        return Some("more than one `Host`");
    }
    if is_repeated(ORIGIN) {
        return Some("more than one `Origin`");
    }
    let host = request.headers().get(HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    if host.contains(&b'@') {
        return Some("a user in its `Host`");
    }
    let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let is_other = authority.is_some_and(|authority| !authority.eq_ignore_ascii_case(host));
    is_other.then_some("another host in its first line than in `Host`")
}

/// Returns the protocol version in the headers of a request, if kitbag does not support it.
pub(super) fn unknown_version(headers: &HeaderMap) -> Option<String> {
    let version = headers.get(VERSION)?.to_str().ok()?;
    let is_known = ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
    (!is_known).then(|| version.to_owned())
}
