//! A proxy, and which connections go through it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use kitbag_contract::text::shown;
use url::Url;

use super::host::{Host, HostError, HostPattern};
use crate::addresses::is_within;

/// An HTTP proxy, through which connections go as tunnels (`CONNECT`).
///
/// What is dialled through it is an address and no name, so that the address that was
/// checked is the one that it dials. `Debug` and `Display` show no credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
    credentials: Option<(Vec<u8>, Vec<u8>)>,
    direct: Vec<Direct>,
}

/// Hosts, or addresses, to which connections go without the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direct {
    /// The hosts of a pattern, as grants write it: `example.com`, `*.example.com`.
    Hosts(HostPattern),
    /// The addresses of a block, whatever name led to one.
    Addresses(IpNet),
}

/// Not the URL of a proxy. The text, which may hold a password, is not repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a proxy is written as `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`")]
pub struct ProxyError;

/// Not what goes without a proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is neither a host, such as `example.com` or `*.example.com`, nor an address, nor a block \
     such as `10.0.0.0/8`{}", shown(text), reason(.cause.as_ref())
)]
pub struct DirectError {
    /// The text as it was given.
    pub text: String,
    /// What is wrong with it as a host.
    #[source]
    pub cause: Option<HostError>,
}

fn reason(cause: Option<&HostError>) -> String {
    cause.map_or(String::new(), |cause| format!(": {cause}"))
}

impl Proxy {
    /// The same proxy, with connections that do not go through it.
    #[must_use]
    pub fn with_direct(self, direct: Vec<Direct>) -> Self {
        Self { direct, ..self }
    }

    /// Its host: a name, or an address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The user and the password that it asks for.
    pub fn credentials(&self) -> Option<(&[u8], &[u8])> {
        self.credentials.as_ref().map(|(user, password)| (&**user, &**password))
    }

    /// What goes without it.
    pub fn direct(&self) -> &[Direct] {
        &self.direct
    }

    /// Whether a connection to this address, which the host has, goes through it. One to this
    /// machine never does: for the proxy, the address is another machine.
    pub fn carries(&self, host: &Host, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_direct = |direct: &Direct| match direct {
            Direct::Hosts(hosts) => hosts.matches(host),
            Direct::Addresses(block) => is_within(address, &[*block]),
        };
        !address.is_loopback() && !address.is_unspecified() && !self.direct.iter().any(is_direct)
    }
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let url = Url::parse(text).map_err(|_| ProxyError)?;
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none();
        let is_bare = is_bare && url.fragment().is_none();
        let (Some(host), true) = (url.host_str(), url.scheme() == "http" && is_bare) else {
            return Err(ProxyError);
        };
        let decoded = |text| percent_encoding::percent_decode_str(text).collect::<Vec<_>>();
        let credentials = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => Some((decoded(user), decoded(password.unwrap_or_default()))),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        Ok(Self { host, port, credentials, direct: Vec::new() })
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "http://[{}]:{}", self.host, self.port),
            false => write!(f, "http://{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Direct {
    type Err = DirectError;

    fn from_str(text: &str) -> Result<Self, DirectError> {
        let error = |cause| DirectError { text: text.to_owned(), cause };
        if let Ok(block) = text.parse::<IpNet>() {
            return match block.trunc() == block {
                true => Ok(Self::Addresses(block)),
                false => Err(error(None)),
            };
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Addresses(address.into()));
        }
        let (below, host) = match text.strip_prefix("*.") {
            Some(base) => (true, base),
            None => (false, text),
        };
        match Host::parse(host).map_err(|cause| error(Some(cause)))? {
            Host::Name(base) if below => Ok(Self::Hosts(HostPattern::Below(base))),
            Host::Address(_) if below => Err(error(None)),
            Host::Address(address) => Ok(Self::Addresses(address.into())),
            host => Ok(Self::Hosts(HostPattern::One(host))),
        }
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts(hosts) => hosts.fmt(f),
            Self::Addresses(block) if block.prefix_len() == block.max_prefix_len() => {
                block.addr().fmt(f)
            }
            Self::Addresses(block) => block.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_plain_url() {
        let texts = [
            "https://proxy:3128",
            "proxy:3128",
            "http://proxy:3128/path",
            "http://proxy:3128?a",
            "http://proxy:3128#a",
            "socks5://proxy",
            "",
        ];
        for text in texts {
            assert!(text.parse::<Proxy>().is_err(), "{text}");
        }
        let proxy: Proxy = "http://user:p%40ss@proxy:3128".parse().unwrap();
        assert_eq!(format!("{proxy} {proxy:?}"), "http://proxy:3128 http://proxy:3128");
        assert_eq!(proxy.credentials(), Some((&b"user"[..], &b"p@ss"[..])));
        let proxy: Proxy = "http://[::1]".parse().unwrap();
        assert_eq!((proxy.host(), proxy.port(), proxy.credentials()), ("::1", 80, None));
        assert_eq!(proxy.to_string(), "http://[::1]:80");
    }

    #[test]
    fn connections_go_through_a_proxy_but_for_those_that_are_named() {
        let texts =
            ["a.example.com", "*.internal.example.com", "10.0.0.0/8", "192.0.2.7", "fd00::/8"];
        let direct: Vec<Direct> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let shown: Vec<_> = direct.iter().map(Direct::to_string).collect();
        assert_eq!(shown, texts);
        let proxy: Proxy = "http://proxy:3128".parse().unwrap();
        let proxy = proxy.with_direct(direct);
        let check = |host: &str, address: &str, expected: bool| {
            let host = Host::parse(host).unwrap();
            assert_eq!(
                proxy.carries(&host, address.parse().unwrap()),
                expected,
                "{host} {address}"
            );
        };
        check("b.example.com", "198.51.100.1", true);
        check("a.example.com", "198.51.100.1", false);
        check("x.a.example.com", "198.51.100.1", true);
        check("x.internal.example.com", "198.51.100.1", false);
        check("x.y.internal.example.com", "198.51.100.1", false);
        check("internal.example.com", "198.51.100.1", true);
        // By its address, whatever name led there.
        check("b.example.com", "10.1.2.3", false);
        check("b.example.com", "::ffff:10.1.2.3", false);
        check("b.example.com", "192.0.2.7", false);
        check("b.example.com", "192.0.2.8", true);
        check("[fd00::1]", "fd00::1", false);
        // This machine is no machine that the proxy knows.
        check("localhost", "127.0.0.1", false);
        check("b.example.com", "127.9.9.9", false);
        check("[::1]", "::1", false);
        check("b.example.com", "::ffff:127.0.0.1", false);
        check("b.example.com", "0.0.0.0", false);
    }

    #[test]
    fn what_goes_without_a_proxy_is_a_host_an_address_or_a_block() {
        for text in [
            "",
            "*",
            "*.",
            "*.10.0.0.1",
            "10.0.0.1/8",
            "https://a.example.com",
            "a.example.com:80",
            "a.*",
            ".example.com",
        ] {
            assert!(text.parse::<Direct>().is_err(), "{text}");
        }
    }
}
