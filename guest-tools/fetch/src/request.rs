//! Requests.

use kitbag_sdk::ErrorInfo;
use kitbag_url::{ParseError, Url};

use crate::arguments::{Format, Method};

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The URL, with `http` or `https`, and without user name, password and fragment.
    pub(crate) url: Url,
    /// The preferred types, in the form of the header field `accept`.
    pub(crate) accept: &'static str,
}

impl Request {
    /// Creates a request for a URL in the form that a person would type into a browser.
    pub(crate) fn new(url: &str, method: Method, format: Format) -> Result<Self, ErrorInfo> {
        let given = kitbag_workspace::quoted(&kitbag_workspace::shown(url));
        let url = match kitbag_url::read(url) {
            Ok(url) => url,
            Err(ParseError::RelativeUrlWithoutBase) => {
                return Err(ErrorInfo::new(format!(
                    "`{given}` has no scheme; a URL starts with `https://`"
                )));
            }
            Err(error) => return Err(ErrorInfo::new(format!("`{given}` is not a URL: {error}"))),
        };
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = kitbag_workspace::shown(url.scheme());
            return Err(ErrorInfo::new(format!(
                "`{given}` has the scheme `{scheme}`; only `https` and `http` are fetched"
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ErrorInfo::new(
                "the URL has a user name or a password in it; credentials are added by the host",
            ));
        }
        let accept = match format {
            Format::Raw => "text/html, */*;q=0.8",
            _ => "text/markdown, text/html;q=0.9, application/json;q=0.9, */*;q=0.8",
        };
        Ok(Self { method, url, accept })
    }

    /// Returns the same request for another URL.
    pub(crate) fn with(&self, url: Url) -> Self {
        Self { method: self.method, url, accept: self.accept }
    }

    /// Formats the request for people, such as ``GET https://example.com/``.
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.method.as_str(), self.url)
    }
}
