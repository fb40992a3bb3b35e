//! Proxies and the connections that use them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::Url;

use super::direct::Direct;
use super::host::Host;
use super::request::HttpRequest;
use super::scheme::Scheme;

/// An HTTP proxy that tunnels connections (`CONNECT`). `Debug` and `Display` hide the credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
    credentials: Option<(Vec<u8>, Vec<u8>)>,
}

/// The proxies of a client, and the connections that bypass them.
///
/// The proxy connects to exactly the checked address, unless [`resolves`](Self::resolves) is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyRules {
    /// The proxy of connections for `http` URLs.
    pub http: Option<Proxy>,
    /// The proxy of connections for `https` URLs.
    pub https: Option<Proxy>,
    /// Connections that bypass the proxy.
    pub direct: Vec<Direct>,
    /// True if the proxies resolve names, so that addresses are not checked. Grants of every host
    /// are not affected.
    pub resolves: bool,
}

/// The error for an invalid proxy URL. It does not repeat the URL, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a proxy must be `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`")]
pub struct ProxyError;

impl Proxy {
    /// Parses the value of a variable such as `HTTPS_PROXY`, in which `http://` is optional.
    ///
    /// # Errors
    ///
    /// [`ProxyError`] if the value is not a valid proxy URL. The message does not repeat the value.
    pub fn read_variable(value: &str) -> Result<Self, ProxyError> {
        let value = value.trim();
        match value.contains("://") {
            true => value.parse(),
            false => format!("http://{value}").parse(),
        }
    }

    /// Returns the host: a name, or an address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the user and password.
    pub fn credentials(&self) -> Option<(&[u8], &[u8])> {
        self.credentials.as_ref().map(|(user, password)| (&**user, &**password))
    }
}

impl ProxyRules {
    /// Returns true if no proxy is set.
    pub fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// Returns the proxy for a request. Connections to this machine never use one: to the proxy,
    /// the address means a different machine. `address` is the address of the host, if known.
    pub fn of(&self, request: &HttpRequest, address: Option<IpAddr>) -> Option<&Proxy> {
        let proxy = match request.scheme() {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        };
        let is_of_machine = |address: IpAddr| {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        };
        let is_here = match (address, request.host()) {
            (Some(address), _) => is_of_machine(address),
            (None, Host::Address(address)) => is_of_machine(*address),
            (None, host @ Host::Name(_)) => host.is_localhost(),
        };
        let is_direct = is_here
            || self
                .direct
                .iter()
                .any(|direct| direct.holds(request.host(), address, request.port()));
        proxy.filter(|_| !is_direct)
    }
}

impl fmt::Display for ProxyRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.http, &self.https) {
            (None, None) => f.write_str("none"),
            (Some(http), Some(https)) if http == https => http.fmt(f),
            (Some(http), Some(https)) => write!(f, "{http} for http, {https} for https"),
            (Some(http), None) => write!(f, "{http} for http"),
            (None, Some(https)) => write!(f, "{https} for https"),
        }
    }
}

impl From<Proxy> for ProxyRules {
    /// Uses this proxy for everything.
    fn from(proxy: Proxy) -> Self {
        Self { http: Some(proxy.clone()), https: Some(proxy), ..Self::default() }
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
        Ok(Self { host, port, credentials })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_plain_urls() {
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
    fn listed_connections_bypass_the_proxy() {
        let texts =
            ["a.example.com", "*.internal.example.com", "10.0.0.0/8", "192.0.2.7", "fd00::/8"];
        let direct: Vec<Direct> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let shown: Vec<_> = direct.iter().map(Direct::to_string).collect();
        assert_eq!(shown, texts);
        let proxy: Proxy = "http://proxy:3128".parse().unwrap();
        let rules = ProxyRules { direct, ..proxy.into() };
        let check = |host: &str, address: &str, expected: bool| {
            let request = HttpRequest::new("GET", &format!("http://{host}/")).unwrap();
            let proxy = rules.of(&request, address.parse().ok());
            assert_eq!(proxy.is_some(), expected, "{host} {address}");
        };
        check("b.example.com", "198.51.100.1", true);
        check("a.example.com", "198.51.100.1", false);
        check("x.a.example.com", "198.51.100.1", true);
        check("x.internal.example.com", "198.51.100.1", false);
        check("x.y.internal.example.com", "198.51.100.1", false);
        check("internal.example.com", "198.51.100.1", true);
        // Matched by address, under any name.
        check("b.example.com", "10.1.2.3", false);
        check("b.example.com", "::ffff:10.1.2.3", false);
        check("b.example.com", "192.0.2.7", false);
        check("b.example.com", "192.0.2.8", true);
        check("[fd00::1]", "fd00::1", false);
        // The proxy cannot reach this machine.
        check("localhost", "127.0.0.1", false);
        check("b.example.com", "127.9.9.9", false);
        check("[::1]", "::1", false);
        check("b.example.com", "::ffff:127.0.0.1", false);
        check("b.example.com", "0.0.0.0", false);
        // With an unknown address.
        check("b.example.com", "-", true);
        check("a.example.com", "-", false);
        check("localhost", "-", false);
        check("db.localhost", "-", false);
        check("127.0.0.1", "-", false);
        check("10.1.2.3", "-", false);
    }

    #[test]
    fn each_scheme_has_its_proxy() {
        let one: Proxy = "http://one:1".parse().unwrap();
        let rules = ProxyRules { http: Some(one), ..ProxyRules::default() };
        let of = |url: &str| {
            let request = HttpRequest::new("GET", url).unwrap();
            rules.of(&request, None).map(ToString::to_string)
        };
        assert_eq!(of("http://a.example/"), Some("http://one:1".to_owned()));
        assert_eq!(of("https://a.example/"), None);
        assert!(!rules.is_empty() && ProxyRules::default().is_empty());
    }

    #[test]
    fn the_scheme_of_a_variable_is_optional() {
        for (value, expected) in [
            ("http://proxy:3128", Some("http://proxy:3128")),
            ("proxy:3128", Some("http://proxy:3128")),
            (" proxy.example.com ", Some("http://proxy.example.com:80")),
            ("ada:pass@10.0.0.1:3128", Some("http://10.0.0.1:3128")),
            ("[::1]:3128", Some("http://[::1]:3128")),
            ("https://proxy:3128", None),
            ("socks5://proxy:1080", None),
            ("", None),
            ("http://", None),
        ] {
            let proxy = Proxy::read_variable(value).ok().map(|proxy| proxy.to_string());
            assert_eq!(proxy.as_deref(), expected, "{value}");
        }
    }
}
