//! Redirects: those within an origin are followed, all others are shown.

use kitbag_sdk::ErrorInfo;
use kitbag_url::Url;
use kitbag_workspace::quoted;

use crate::request::Request;
use crate::response::Response;

/// Maximum number of redirects that a call follows.
const MOST: usize = 5;

/// The last request of a call and its response.
pub(crate) struct Exchange {
    pub(crate) request: Request,
    pub(crate) response: Response,
    /// The URL of the call if redirects were followed.
    pub(crate) start: Option<Url>,
    /// The reason why the last redirect was not followed.
    pub(crate) refusal: Option<String>,
}

/// Sends a request and follows redirects within its origin. The host decides on each request: if
/// it refuses one, the redirect to it is the response.
pub(crate) fn follow(
    mut request: Request,
    send: impl Fn(&Request) -> Result<Response, ErrorInfo>,
) -> Result<Exchange, ErrorInfo> {
    let mut response = send(&request)?;
    let mut seen = vec![request.url.clone()];
    let refusal = loop {
        let Some(target) = target(&request, &response) else { break None };
        if target.origin() != request.url.origin() {
            break Some("it leaves the site; fetch that URL to read it".to_owned());
        }
        if seen.contains(&target) {
            break Some("it forms a loop".to_owned());
        }
        if seen.len() > MOST {
            break Some(format!("the limit of {MOST} redirects is reached"));
        }
        let next = request.with(target);
        match send(&next) {
            Ok(answer) => response = answer,
            Err(error) if error.transient => return Err(error),
            Err(error) => break Some(error.message),
        }
        seen.push(next.url.clone());
        request = next;
    };
    let start = (seen.len() > 1).then(|| seen.swap_remove(0));
    Ok(Exchange { request, response, start, refusal })
}

/// Returns the URL that a response redirects to.
fn target(request: &Request, response: &Response) -> Option<Url> {
    let location = response.location()?;
    let mut url = request.url.join(&location).ok()?;
    url.set_fragment(None);
    // Only the host adds credentials.
    let is_plain = url.username().is_empty() && url.password().is_none();
    (matches!(url.scheme(), "http" | "https") && is_plain).then_some(url)
}

impl Exchange {
    /// Returns a note if redirects were followed.
    pub(crate) fn note(&self) -> Option<String> {
        let start = self.start.as_ref()?;
        Some(format!(
            "redirected from {} to {}",
            quoted(start.as_str()),
            quoted(self.request.url.as_str())
        ))
    }

    /// Describes a redirect that was not followed.
    pub(crate) fn redirect(&self) -> Option<String> {
        let location = self.response.location()?;
        let url = &self.request.url;
        // A target is relative to the request.
        let target = url.join(&location).map_or(location, String::from);
        let refusal = self.refusal.as_deref().unwrap_or("its URL cannot be fetched");
        Some(format!(
            "status {}: `{url}` is redirected to {}\n[not followed: {refusal}]",
            self.response.status,
            quoted(&target)
        ))
    }
}
