//! Patterns of URLs: scheme, host, port and path.

use std::fmt;
use std::str::FromStr;

use kitbag_base::text::shown;

use crate::http::host::{Host, HostError, HostPattern, with_port};
use crate::http::path::{PathError, PathPattern};
use crate::http::request::HttpRequest;
use crate::http::scheme::Scheme;

/// The longest pattern, in bytes: each request has one, in which every character may be encoded.
const MAX_BYTES: usize = 32 << 10;

/// A pattern of URLs, such as `https://api.github.com/repos/**`.
///
/// `scheme://host[:port][/path]`. The host may be `*` or start with `*.`; without a port it
/// is the scheme's; without a path it is every one. In a path `*` stands for any characters
/// within a segment, `**` for any number of segments. Every query is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UrlPattern {
    scheme: Scheme,
    host: HostPattern,
    /// `None`: that of the scheme, and in a list of what is denied every one.
    port: Option<u16>,
    path: PathPattern,
}

/// Why a text is not a pattern of URLs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a pattern of URLs: {reason}", shown(text))]
pub struct UrlPatternError {
    /// The text as it was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: UrlPatternProblem,
}

/// What is wrong with a pattern of URLs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlPatternProblem {
    /// It starts with neither of the two schemes.
    #[error("it must start with `https://` or `http://`")]
    Scheme,
    /// Its host is none.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A star that is not the first label of its host.
    #[error("in a host `*` is all of it, or its first label: `*.example.com`")]
    Star,
    /// A star for a port.
    #[error("a port is a number; write one pattern for each")]
    StarPort,
    /// All names below a suffix under which anyone can register one.
    #[error("anyone can register names below `{0}`; name the hosts that are meant")]
    PublicSuffix(String),
    /// It has a query.
    #[error("a query cannot be limited; leave out what starts with `?`")]
    Query,
    /// It has a fragment.
    #[error("a fragment is not sent to a server; leave out what starts with `#`")]
    Fragment,
    /// Its path is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It is too long.
    #[error("it is longer than 32 KiB")]
    Long,
}

impl UrlPattern {
    /// Reads a pattern of what is granted.
    ///
    /// # Errors
    ///
    /// [`UrlPatternError`] for what has another form, and for all names below a public
    /// suffix, such as `*.com` and `*.github.io`.
    pub fn parse(text: &str) -> Result<Self, UrlPatternError> {
        let pattern = Self::parse_denied(text)?;
        let HostPattern::Below(base) = &pattern.host else { return Ok(pattern) };
        // Asked for a name below, since the list has such as `*.kawasaki.jp`. A name with one
        // label that it does not have is a suffix too.
        let below = format!("any-name.{base}");
        match psl::suffix_str(&below).is_none_or(|suffix| suffix.len() >= base.len()) {
            true => {
                let reason = UrlPatternProblem::PublicSuffix(base.clone());
                Err(UrlPatternError { text: text.to_owned(), reason })
            }
            false => Ok(pattern),
        }
    }

    /// Reads a pattern of what is denied, which may have all names below a public suffix.
    ///
    /// # Errors
    ///
    /// [`UrlPatternError`] for what has another form.
    pub fn parse_denied(text: &str) -> Result<Self, UrlPatternError> {
        let failed = |reason| UrlPatternError { text: text.to_owned(), reason };
        read(text).map_err(failed)
    }

    /// The pattern of one URL, whatever its query.
    pub(crate) fn exactly(request: &HttpRequest) -> Self {
        let port = Some(request.port()).filter(|port| *port != request.scheme().port());
        Self {
            scheme: request.scheme(),
            host: HostPattern::One(request.host().clone()),
            port,
            path: PathPattern::exactly(request.segments()),
        }
    }

    /// Its scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Its host.
    pub fn host(&self) -> &HostPattern {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(self.scheme.port())
    }

    /// Whether it has every host.
    pub fn is_any_host(&self) -> bool {
        self.host == HostPattern::Any
    }

    /// Whether each path that it has holds an encoded slash.
    pub fn needs_encoded_slash(&self) -> bool {
        self.path.needs_encoded_slash()
    }

    /// Whether the URL of a request fits it.
    pub fn matches(&self, request: &HttpRequest) -> bool {
        self.scheme == request.scheme()
            && self.host.matches(request.host())
            && self.port() == request.port()
            && self.path.matches(request.segments())
    }

    pub(crate) fn matches_path(&self, request: &HttpRequest) -> bool {
        self.path.matches(request.segments())
    }

    /// Whether it denies a request: by either scheme, on every port where it has none, and
    /// by every path that some server could take for one of its own.
    pub(crate) fn matches_widely(&self, request: &HttpRequest) -> bool {
        self.host.matches_widely(request.host()) && self.matches_port_and_path_widely(request)
    }

    pub(crate) fn matches_port_and_path_widely(&self, request: &HttpRequest) -> bool {
        self.port.is_none_or(|port| port == request.port())
            && self.path.matches_widely(request.path())
    }

    /// Whether it has every URL that the other one has.
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
