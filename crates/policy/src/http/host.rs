//! Hosts of requests and host patterns.

use std::fmt;
use std::net::IpAddr;

use kitbag_base::text::shown;

/// The host of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A DNS name in lower case, without a trailing dot.
    Name(String),
    /// An IP address.
    Address(IpAddr),
}

/// A pattern of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// `*`: every host.
    Any,
    /// `*.example.com`: all names below the given name, at any depth, without the name itself.
    Below(String),
    /// One host.
    One(Host),
}

/// Why a string is not a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The host is empty.
    #[error("it has no host")]
    Empty,
    /// Credentials precede the host.
    #[error("it has a user name or password before the host, which belong in a header")]
    UserInfo,
    /// The name has characters that DNS names cannot contain.
    #[error("host `{}` must be written `{ascii}`", shown(host))]
    NotAscii {
        /// The given name.
        host: String,
        /// The name in DNS characters (punycode).
        ascii: String,
    },
    /// A character that is not valid in host names.
    #[error("`{}` is not a host name: use letters, digits, `-` and `_`, in labels of at most 63", shown(.0))]
    Character(String),
    /// The address is not in canonical form.
    #[error("host `{}` must be written `{plain}`", shown(host))]
    Address {
        /// The given address.
        host: String,
        /// The address in canonical form, the only accepted one.
        plain: String,
    },
    /// The name ends in a dot.
    #[error("host `{}` must not end in a dot", shown(.0))]
    Dot(String),
    /// The port is not valid or not in canonical form.
    #[error("`{}` is not a port: use a number from 1 to 65535 without leading zeros", shown(.0))]
    Port(String),
}

impl Host {
    /// Parses a host. Letters may be in either case; nothing else is normalized.
    ///
    /// # Errors
    ///
    /// [`HostError`] for a string that the URL library would have to change to accept it.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        let invalid = || HostError::Character(text.to_owned());
        if !text.is_ascii() {
            let ascii = url::Host::parse(text).map_err(|_| invalid())?.to_string();
            return Err(HostError::NotAscii { host: text.to_owned(), ascii });
        }
        if text.ends_with('.') {
            return Err(HostError::Dot(text.to_owned()));
        }
        let address =
            |address: IpAddr, forms: &[String]| match forms.iter().any(|form| form == text) {
                true => Ok(Self::Address(address)),
                false => {
                    let plain = forms.first().cloned().unwrap_or_default();
                    Err(HostError::Address { host: text.to_owned(), plain })
                }
            };
        match url::Host::parse(text).map_err(|_| invalid())? {
            url::Host::Ipv4(v4) => address(v4.into(), &[v4.to_string()]),
            // The standard library formats IPv4 in IPv6 with dots, the URL library does not.
            url::Host::Ipv6(v6) => {
                address(v6.into(), &[format!("[{v6}]"), url::Host::<&str>::Ipv6(v6).to_string()])
            }
            url::Host::Domain(name) => {
                let is_plain =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                let is_label =
                    |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_plain);
                let is_name = name.len() <= 253 && name.split('.').all(is_label);
                match is_name && name.eq_ignore_ascii_case(text) {
                    true => Ok(Self::Name(name)),
                    false => Err(invalid()),
                }
            }
        }
    }
}

impl Host {
    /// Returns true for a name of this machine, which is resolved without DNS: RFC 6761.
    pub fn is_localhost(&self) -> bool {
        matches!(self, Self::Name(name) if name == "localhost" || name.ends_with(".localhost"))
    }
}

/// Splits `host:port`. The port must be in canonical form.
pub(crate) fn with_port(authority: &str) -> Result<(&str, Option<u16>), HostError> {
    if authority.contains('@') {
        return Err(HostError::UserInfo);
    }
    // The colons of an IPv6 address are in brackets.
    let after = authority.rfind(']').map_or(0, |end| end + 1);
    let Some(colon) = authority[after..].find(':') else { return Ok((authority, None)) };
    let (host, port) = (&authority[..after + colon], &authority[after + colon + 1..]);
    let number =
        port.parse::<u16>().ok().filter(|number| *number > 0 && number.to_string() == port);
    match number {
        Some(number) => Ok((host, Some(number))),
        None => Err(HostError::Port(port.to_owned())),
    }
}

impl HostPattern {
    /// Returns true if the pattern names a host or a domain, and not every host.
    pub fn is_of_names(&self) -> bool {
        matches!(self, Self::Below(_) | Self::One(Host::Name(_)))
    }

    /// Returns true if the pattern matches a host.
    pub(crate) fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Below(base), Host::Name(name)) => is_below(name, base),
            (Self::Below(_), Host::Address(_)) => false,
            (Self::One(own), host) => own == host,
        }
    }

    /// Matches as in deny lists: `*.` includes the host itself, and all IPv6 forms of an IPv4
    /// address are equal.
    pub(crate) fn matches_widely(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Below(base), Host::Name(name)) => name == base || is_below(name, base),
            (Self::One(Host::Address(own)), Host::Address(address)) => {
                crate::addresses::is_within(*address, &[crate::addresses::canonical(*own).into()])
            }
            _ => self.matches(host),
        }
    }

    /// Returns true if the pattern covers all hosts of another pattern.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Any) => false,
            (Self::Below(base), Self::Below(other)) => other == base || is_below(other, base),
            (Self::One(_), Self::Below(_)) => false,
            (own, Self::One(host)) => own.matches(host),
        }
    }
}

fn is_below(name: &str, base: &str) -> bool {
    name.strip_suffix(base).is_some_and(|labels| labels.len() > 1 && labels.ends_with('.'))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Below(base) => write!(f, "*.{base}"),
            Self::One(host) => host.fmt(f),
        }
    }
}
