//! HTTP requests of tools.

use std::fmt;

use kitbag_base::text::shown;
use url::Url;

use crate::http::host::{Host, with_port};
use crate::http::method::{GET, Method};
use crate::http::path::{Segments, check};
use crate::http::refusal::{HttpRefusal, RefusalKind};
use crate::http::scheme::Scheme;

/// The longest URL of a request, in bytes.
pub const MAX_URL_BYTES: usize = 8 << 10;

/// An HTTP request: a method and a URL that every program parses in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpRequest {
    method: Method,
    scheme: Scheme,
    host: Host,
    port: u16,
    /// Starts with `/`.
    path: String,
    /// Without the `?`.
    query: Option<String>,
    segments: Segments,
}

impl HttpRequest {
    /// Parses a request. Letters of the scheme and the host may be in either case, and an empty
    /// path becomes `/`; nothing else is normalized.
    ///
    /// # Errors
    ///
    /// [`HttpRefusal`] with the kind of the invalid part: control characters, spaces, backslashes,
    /// non-ASCII characters, credentials, a host that is empty, encoded or ends in a dot, a
    /// non-canonical address or port, segments `.` and `..`, encoded or not, a fragment, and more
    /// than [`MAX_URL_BYTES`].
    pub fn new(method: &str, url: &str) -> Result<Self, HttpRefusal> {
        let refused = |kind, reason: &dyn fmt::Display| {
            HttpRefusal::new(kind, format!("`{}` is refused: {reason}", shown(url)))
        };
        if url.len() > MAX_URL_BYTES {
            return Err(refused(RefusalKind::Size, &"a URL must have at most 8 KiB"));
        }
        let method = Method::requested(method)?;
        let schemes = "only `https` and `http` can be granted";
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| refused(RefusalKind::Scheme, &schemes))?;
        let scheme = match scheme {
            scheme if scheme.eq_ignore_ascii_case("https") => Scheme::Https,
            scheme if scheme.eq_ignore_ascii_case("http") => Scheme::Http,
            _ => return Err(refused(RefusalKind::Scheme, &schemes)),
        };
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let host = with_port(authority).and_then(|(host, port)| Ok((Host::parse(host)?, port)));
        let (host, port) = host.map_err(|error| refused(RefusalKind::Host, &error))?;
        if rest.contains('#') {
            return Err(refused(RefusalKind::Path, &"a fragment is not sent to a server"));
        }
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        check(path).map_err(|error| refused(RefusalKind::Path, &error))?;
        let is_plain = |byte: u8| (0x21..0x7f).contains(&byte) && byte != b'\\';
        if query.is_some_and(|query| !query.bytes().all(is_plain)) {
            let reason = "a query must encode control characters, spaces, backslashes and \
                          non-ASCII characters";
            return Err(refused(RefusalKind::Path, &reason));
        }
        let request = Self {
            method,
            scheme,
            host,
            port: port.unwrap_or(scheme.port()),
            path: path.to_owned(),
            query: query.map(str::to_owned),
            segments: Segments::new(path),
        };
        match request.is_read_alike(url) {
            true => Ok(request),
            false => Err(refused(RefusalKind::Host, &"some programs would read it differently")),
        }
    }

    /// Parses a URL as people and models write it, with the function that the tool `fetch` uses for
    /// its argument, so that both get the same decision.
    ///
    /// # Errors
    ///
    /// As [`Self::new`], also if the text is not a URL.
    pub fn read(method: &str, text: &str) -> Result<Self, HttpRefusal> {
        let url = kitbag_url::read(text).map_err(|error| {
            let reason = format!("`{}` is not a URL: {error}", shown(text));
            HttpRefusal::new(RefusalKind::Path, reason)
        })?;
        // The tool refuses credentials before it sends the request; for a string, the host does.
        Self::new(method, url.as_str())
    }

    /// Creates a `GET` request for a URL.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn get(url: &str) -> Result<Self, HttpRefusal> {
        Self::new(GET, url)
    }

    /// Returns true if the URL library parses a URL into the same parts.
    fn is_read_alike(&self, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else { return false };
        let host = url.host_str().and_then(|host| Host::parse(host).ok());
        url.scheme() == self.scheme.as_str()
            && host.as_ref() == Some(&self.host)
            && url.port_or_known_default() == Some(self.port)
            && Segments::new(url.path()) == self.segments
            && url.query().is_some() == self.query.is_some()
    }

    /// Returns the method, such as `GET`.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the port; by default that of the scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path as given. It starts with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the query as given, without the `?`.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Returns scheme, host and port. Requests with equal origins can share a connection.
    pub fn origin(&self) -> (Scheme, &Host, u16) {
        (self.scheme, &self.host, self.port)
    }

    /// Returns the host, and the port if it is not the scheme's default: the value of the header
    /// field `Host`.
    pub fn authority(&self) -> String {
        match self.port == self.scheme.port() {
            true => self.host.to_string(),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Returns scheme, host and port as a URL prefix: `https://api.example:8443`.
    pub fn origin_url(&self) -> String {
        format!("{}://{}", self.scheme, self.authority())
    }

    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }
}

impl fmt::Display for HttpRequest {
    /// Formats the request without the query, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.origin_url(), shown(&self.path))
    }
}
