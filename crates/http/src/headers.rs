//! The header fields of a request that reach a server.
//!
//! Grants decide which names a tool may send; this module limits their number and classifies them.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use kitbag_policy::http::{HttpRefusal, RefusalKind};

/// The most header fields of one request. Most servers accept a hundred.
const MOST_FIELDS: usize = 100;

/// The most bytes in names and values of one request's header fields.
const MOST_BYTES: usize = 32 << 10;

/// Fields that are sent to another origin after a redirect. Any other field may identify the sender
/// and is sent only to its original destination.
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

/// Fields that describe a body.
pub(crate) const OF_BODY: [HeaderName; 5] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_TYPE,
];

/// Returns the fields that may be sent to another origin.
pub(crate) fn for_another_origin(headers: &HeaderMap) -> HeaderMap {
    let is_for_all = |(name, _): &(&HeaderName, &HeaderValue)| FOR_EVERY_ORIGIN.contains(name);
    headers.iter().filter(is_for_all).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Checks the number of header fields and their total length.
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
