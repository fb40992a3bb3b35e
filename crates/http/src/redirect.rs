//! Redirects: their targets, and the parts of a request that are sent there.

use http::{Method, Response, StatusCode, header};
use kitbag_policy::http::{HttpRefusal, HttpRequest, RefusalKind};
use kitbag_secrets::Redactor;
use url::Url;

use crate::error::RequestError;
use crate::headers;
use crate::outgoing_request::OutgoingRequest;

/// Returns true if a response is a redirect that can be followed: a body that was sent is not sent
/// again.
///
/// Source: RFC 9110, section 15.4.
pub(crate) fn is_one<B>(response: &Response<B>, outgoing: &OutgoingRequest) -> bool {
    let is_redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    is_redirect
        && response.headers().get_all(header::LOCATION).iter().count() == 1
        && (outgoing.is_empty || becomes_get(response.status(), &outgoing.method))
}

/// Returns true if a redirect changes the method to `GET`.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => *method == Method::POST,
        StatusCode::SEE_OTHER => *method != Method::GET && *method != Method::HEAD,
        _ => false,
    }
}

/// Returns the target of a redirect and removes the parts of the request that are not sent there.
pub(crate) fn next<B>(
    response: &Response<B>,
    outgoing: &mut OutgoingRequest,
    from: &HttpRequest,
    redactor: &Redactor,
) -> Result<String, RequestError> {
    let invalid =
        || RequestError::Protocol("it redirects to something that is not a URL".to_owned());
    let location = response.headers().get(header::LOCATION).ok_or_else(invalid)?;
    // An error of the next request would show the URL, in any case.
    if redactor.finds(location.as_bytes()) {
        let reason = "it redirects to a URL that contains the value of a secret";
        return Err(HttpRefusal::new(RefusalKind::Secret, reason).into());
    }
    let location = location.to_str().map_err(|_| invalid())?;
    // The URL is not normalized as browsers do.
    if location.bytes().any(|byte| byte <= b' ' || byte == b'\\') {
        return Err(invalid());
    }
    let (location, _) = location.split_once('#').unwrap_or((location, ""));
    let base = Url::parse(&url_of(from)).map_err(|_| invalid())?;
    let to = match location.find([':', '/', '?']).map(|at| location.split_at(at)) {
        // Kept as written, so that it is checked like the URL of any request.
        Some((scheme, rest)) if !scheme.is_empty() && rest.starts_with(':') => location.to_owned(),
        Some(("", rest)) if rest.starts_with("//") => format!("{}:{rest}", base.scheme()),
        Some(("", rest)) if rest.starts_with('/') => format!("{}{rest}", from.origin_url()),
        _ => base.join(location).map_err(|_| invalid())?.into(),
    };
    if Url::parse(&to).map_err(|_| invalid())?.origin() != base.origin() {
        outgoing.headers = headers::for_another_origin(&outgoing.headers);
    }
    if becomes_get(response.status(), &outgoing.method) {
        outgoing.method = Method::GET;
        outgoing.drop_body();
    }
    Ok(to)
}

/// Returns the URL of a request, including its query.
fn url_of(request: &HttpRequest) -> String {
    format!("{}{}", request.origin_url(), path_of(request))
}

/// Returns path and query of a request, as given.
pub(crate) fn path_of(request: &HttpRequest) -> String {
    match request.query() {
        Some(query) => format!("{}?{query}", request.path()),
        None => request.path().to_owned(),
    }
}
