//! URL patterns: scheme, host, port and path.

use std::fmt;
use std::str::FromStr;

use kitbag_base::text::shown;

use crate::http::host::{Host, HostError, HostPattern, with_port};
use crate::http::path::{PathError, PathPattern};
use crate::http::request::HttpRequest;
use crate::http::scheme::Scheme;

/// The longest pattern, in bytes: room for the URL of any request with every character encoded.
const MAX_BYTES: usize = 32 << 10;

/// A URL pattern such as `https://api.github.com/repos/**`.
///
/// `scheme://host[:port][/path]`. The host may be `*` or start with `*.`. The default port is the
/// scheme's, and the default path matches every path. In a path, `*` matches any characters within
/// a segment and `**` any number of segments. Queries are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UrlPattern {
    scheme: Scheme,
    host: HostPattern,
    /// `None`: the scheme's port; in a deny list, every port.
    port: Option<u16>,
    path: PathPattern,
}

/// The error for a string that is not a URL pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a URL pattern: {reason}", shown(text))]
pub struct UrlPatternError {
    /// The invalid string.
    pub text: String,
    /// The problem.
    pub reason: UrlPatternProblem,
}

/// A problem with a URL pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlPatternProblem {
    /// The scheme is not `https` or `http`.
    #[error("it must start with `https://` or `http://`")]
    Scheme,
    /// The host is not valid.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A star that is not the first label of the host.
    #[error("in a host, `*` is the whole host or its first label: `*.example.com`")]
    Star,
    /// The port is a star.
    #[error("a port must be a number; write one pattern for each")]
    StarPort,
    /// The pattern matches all names below a public suffix, under which anyone can register names.
    #[error("anyone can register names below `{0}`; name the intended hosts")]
    PublicSuffix(String),
    /// The pattern has a query.
    #[error("a query cannot be restricted; remove the part after `?`")]
    Query,
    /// The pattern has a fragment.
    #[error("a fragment is not sent to a server; remove the part after `#`")]
    Fragment,
    /// The path is not valid.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The pattern is too long.
    #[error("it is longer than 32 KiB")]
    Long,
}

impl UrlPattern {
    /// Parses a pattern of granted URLs.
    ///
    /// # Errors
    ///
    /// [`UrlPatternError`] for an invalid pattern and for all names below a public suffix, such as
    /// `*.com` and `*.github.io`.
    pub fn parse(text: &str) -> Result<Self, UrlPatternError> {
        let pattern = Self::parse_denied(text)?;
        let HostPattern::Below(base) = &pattern.host else { return Ok(pattern) };
        // Checks a name below the base, since the list has entries such as `*.kawasaki.jp`. An
        // unlisted name with one label is a suffix as well.
        let below = format!("any-name.{base}");
        match psl::suffix_str(&below).is_none_or(|suffix| suffix.len() >= base.len()) {
            true => {
                let reason = UrlPatternProblem::PublicSuffix(base.clone());
                Err(UrlPatternError { text: text.to_owned(), reason })
            }
            false => Ok(pattern),
        }
    }

    /// Parses a pattern of denied URLs, which may match all names below a public suffix.
    ///
    /// # Errors
    ///
    /// [`UrlPatternError`] for an invalid pattern.
    pub fn parse_denied(text: &str) -> Result<Self, UrlPatternError> {
        let failed = |reason| UrlPatternError { text: text.to_owned(), reason };
        read(text).map_err(failed)
    }

    /// Matches one URL with any query.
    pub(crate) fn exactly(request: &HttpRequest) -> Self {
        let port = Some(request.port()).filter(|port| *port != request.scheme().port());
        Self {
            scheme: request.scheme(),
            host: HostPattern::One(request.host().clone()),
            port,
            path: PathPattern::exactly(request.segments()),
        }
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host pattern.
    pub fn host(&self) -> &HostPattern {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(self.scheme.port())
    }

    /// Returns true if the pattern matches every host.
    pub fn is_any_host(&self) -> bool {
        self.host == HostPattern::Any
    }

    /// Returns true if every matching path has an encoded slash.
    pub fn needs_encoded_slash(&self) -> bool {
        self.path.needs_encoded_slash()
    }

    /// Returns true if the pattern matches the URL of a request.
    pub fn matches(&self, request: &HttpRequest) -> bool {
        self.scheme == request.scheme()
            && self.host.matches(request.host())
            && self.port() == request.port()
            && self.path.matches(request.segments())
    }

    pub(crate) fn matches_path(&self, request: &HttpRequest) -> bool {
        self.path.matches(request.segments())
    }

    /// Returns true if the pattern denies a request: with either scheme, on every port unless it
    /// has one, and for every path that a server could take for a matching one.
    pub(crate) fn matches_widely(&self, request: &HttpRequest) -> bool {
        self.host.matches_widely(request.host()) && self.matches_port_and_path_widely(request)
    }

    pub(crate) fn matches_port_and_path_widely(&self, request: &HttpRequest) -> bool {
        self.port.is_none_or(|port| port == request.port())
            && self.path.matches_widely(request.path())
    }

    /// Returns true if every URL of `other` matches.
    pub fn holds(&self, other: &Self) -> bool {
        self.scheme == other.scheme
            && self.host.holds(&other.host)
            && self.port() == other.port()
            && self.path.holds(&other.path)
    }
}

fn read(text: &str) -> Result<UrlPattern, UrlPatternProblem> {
    if text.len() > MAX_BYTES {
        return Err(UrlPatternProblem::Long);
    }
    let (scheme, rest) = if let Some(rest) = text.strip_prefix("https://") {
        (Scheme::Https, rest)
    } else if let Some(rest) = text.strip_prefix("http://") {
        (Scheme::Http, rest)
    } else {
        return Err(UrlPatternProblem::Scheme);
    };
    if rest.contains('#') {
        return Err(UrlPatternProblem::Fragment);
    }
    if rest.contains('?') {
        return Err(UrlPatternProblem::Query);
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.ends_with(":*") {
        return Err(UrlPatternProblem::StarPort);
    }
    let (host, port) = with_port(authority)?;
    let host = match host.strip_prefix("*.") {
        _ if host == "*" => HostPattern::Any,
        Some(base) if !base.contains('*') => match Host::parse(base)? {
            Host::Name(base) => HostPattern::Below(base),
            Host::Address(_) => return Err(UrlPatternProblem::Star),
        },
        None if !host.contains('*') => HostPattern::One(Host::parse(host)?),
        _ => return Err(UrlPatternProblem::Star),
    };
    let path = match path {
        "" => PathPattern::any(),
        path => PathPattern::parse(path)?,
    };
    Ok(UrlPattern { scheme, host, port, path })
}

impl FromStr for UrlPattern {
    type Err = UrlPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for UrlPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        self.path.fmt(f)
    }
}
