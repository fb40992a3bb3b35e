//! Secrets of a call: adding them to requests and masking them in responses.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use kitbag_policy::http::{HttpRefusal, HttpRequest, RefusalKind};
use kitbag_secrets::{CallSecrets, PlainRequest, Redactor, RequestPart, SecretRefusal};

use crate::error::RequestError;

/// A request as it is sent.
pub(crate) struct WireRequest {
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Findings that look like keys or tokens but do not block the request.
    pub(crate) warnings: Vec<String>,
}

/// Checks a request and adds the secrets for its destination. Uses a separate thread, since reading
/// a secret may start a program.
pub(crate) async fn prepare(
    secrets: &Arc<CallSecrets>,
    request: &Arc<HttpRequest>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<WireRequest, RequestError> {
    let (secrets, request) = (Arc::clone(secrets), Arc::clone(request));
    let work = tokio::task::spawn_blocking(move || prepare_now(&secrets, &request, &headers, body));
    work.await.unwrap_or_else(|error| Err(RequestError::Internal(error.to_string())))
}

fn prepare_now(
    secrets: &CallSecrets,
    request: &HttpRequest,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<WireRequest, RequestError> {
    let had_body = !body.is_empty();
    let pair = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    let outgoing = PlainRequest {
        authority: request.authority(),
        path: request.path().to_owned(),
        query: request.query().map(str::to_owned),
        headers: headers.iter().map(pair).collect(),
        body: had_body.then(|| body.to_vec()),
    };
    let prepared = secrets.prepare(outgoing, |grant| grant.relation(request));
    let prepared = prepared.map_err(|refusal| refused(request, &refusal))?;
    let PlainRequest { path, query, headers: fields, body, .. } = prepared.request;
    let path = query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
    let (mut headers, redactor) = (HeaderMap::new(), secrets.redactor());
    for (name, value) in fields {
        let field = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, mut value) = field.ok_or_else(|| {
            let reason = format!("the secret for the header `{name}` contains a line break");
            RequestError::from(HttpRefusal::new(RefusalKind::Header, reason))
        })?;
        // Keeps it out of the logs of lower crates and out of HTTP/2 tables.
        let has_secret = redactor.finds(value.as_bytes());
        value.set_sensitive(has_secret || name == header::AUTHORIZATION);
        headers.append(name, value);
    }
    let body = Bytes::from(body.unwrap_or_default());
    if had_body || headers.contains_key(header::CONTENT_LENGTH) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    Ok(WireRequest { path, headers, body, warnings: prepared.warnings })
}

/// Converts the refusal of a request.
fn refused(request: &HttpRequest, refusal: &SecretRefusal) -> RequestError {
    let (kind, by) = match refusal {
        SecretRefusal::Leak { rule, .. } => (RefusalKind::Leak, Some(&**rule)),
        SecretRefusal::Value { .. }
        | SecretRefusal::Placeholder { .. }
        | SecretRefusal::Two { .. } => (RefusalKind::Secret, None),
        SecretRefusal::OwnCredentials { part: RequestPart::Path | RequestPart::Query, .. } => {
            (RefusalKind::Path, None)
        }
        SecretRefusal::OwnCredentials { .. } | SecretRefusal::Range { .. } => {
            (RefusalKind::Header, None)
        }
        SecretRefusal::Unreadable { secret, .. } => {
            (RefusalKind::Unreadable, Some(secret.as_str()))
        }
    };
    let cause = std::error::Error::source(refusal).map(|cause| format!(": {cause}"));
    let reason = format!("`{request}` is refused: {refusal}{}", cause.unwrap_or_default());
    HttpRefusal { by: by.map(Into::into), ..HttpRefusal::new(kind, reason) }.into()
}

/// Masks secret values in header fields.
pub(crate) fn redact_headers(redactor: &Redactor, headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        let mut bytes = value.as_bytes().to_vec();
        if redactor.redact(&mut bytes)
            && let Ok(masked) = HeaderValue::try_from(bytes)
        {
            *value = masked;
        }
    }
}
