//! What of a request's header fields reaches a server.
//!
//! Which names a tool may send is decided by its grants; here is how many, and which of
//! them belong to what.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use kitbag_policy::http::{HttpRefusal, RefusalKind};

/// Header fields of one request. Servers take a hundred as a rule.
const MOST_FIELDS: usize = 100;

/// All names and values of one request's header fields.
const MOST_BYTES: usize = 32 << 10;

/// What a request takes along to another origin. Any other field may say who asks, and goes to
/// the origin that it was meant for.
const FOR_EVERY_ORIGIN: [HeaderName; 9] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::RANGE,
    header::USER_AGENT,
];

/// What says something of a body.
pub(crate) const OF_BODY: [HeaderName; 5] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_TYPE,
];

/// Leaves what goes to another origin, too.
pub(crate) fn for_another_origin(headers: &HeaderMap) -> HeaderMap {
    let is_for_all = |(name, _): &(&HeaderName, &HeaderValue)| FOR_EVERY_ORIGIN.contains(name);
    headers.iter().filter(is_for_all).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Checks how many header fields there are, and how long they are together.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let refused = |reason: String| Err(HttpRefusal::new(RefusalKind::Header, reason));
    if headers.len() > MOST_FIELDS {
        return refused(format!("{} header fields: the limit is {MOST_FIELDS}", headers.len()));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    match bytes > MOST_BYTES {
        true => refused(format!("{bytes} bytes of header fields: the limit is {MOST_BYTES}")),
        false => Ok(()),
    }
}
