//! Which header fields a tool may send.

use std::fmt;

use kitbag_base::text::shown;

use crate::http::method::is_token;

/// What the host or the connection decides: no tool sends them.
const NEVER: [&str; 12] = [
    "connection",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Names with one of these in them, where `-` stands before the name too, make some servers
/// take a request for another one than was decided on: another method, path, host, client or
/// user. A tool sends them only where its grant names them.
///
/// `tests/http/overrides.txt` has the fields in full.
const OVERRIDES: [&str; 56] = [
    // The method. Source: `method-override` of Express, which names those of Google,
    // Microsoft and IBM.
    "method",
    "override",
    "verb",
    // The path, as a proxy has changed it. Source: CVE-2018-14773 (Symfony, Zend),
    // CVE-2025-29927 (Next.js), ingress-nginx, `x-envoy-original-path`, `X-Replaced-Path` of
    // Traefik, and the list of PortSwigger's Param Miner.
    "-original-",
    "-path",
    "-uri",
    "-url",
    "middleware",
    "rewrite",
    "script-name",
    // Its host and scheme. Source: RFC 7239, and what was there before it; `Front-End-Https` of
    // Microsoft, and HTTP Host header attacks of PortSwigger.
    "-host",
    "-https",
    "-scheme",
    "forwarded",
    // The client. Source: the same, `ngx_http_realip_module`, `True-Client-IP` of Akamai, and
    // `CF-Connecting-IP` of Cloudflare.
    "client-ip",
    "connecting-ip",
    "originating-ip",
    "real-ip",
    // The user, whom a proxy in front has authenticated. Source: Grafana and Authelia
    // (`Remote-User`, `X-WEBAUTH-USER`), nginx and Apache (`X-SSL-Client-S-DN`), RFC 9440
    // (`Client-Cert`), oauth2-proxy, Cloudflare Access, Google IAP, Tailscale, Azure App Service,
    // AWS load balancers, Authentik, Pomerium, Vouch, Kong, Kubernetes, WebSEAL, SiteMinder,
    // mod_auth_openidc, Shibboleth, Envoy.
    "-remote-",
    "-webauth",
    "-user-id",
    "-user-name",
    "-userid",
    "-username",
    "-x-user",
    "-userinfo",
    "-proxy-user",
    "amzn-oidc",
    "auth-request",
    "authenticated",
    "authentik",
    "cf-access",
    "client-cert",
    "client-dn",
    "client-principal",
    "clientcert",
    "-consumer-",
    "envoy-internal",
    "goog-iap",
    "impersonate",
    "iv-user",
    "jwt-assertion",
    "oidc-claim",
    "pomerium",
    "shib-",
    "sm-user",
    "ssl-client",
    "tailscale-",
    "vouch-",
    // A second path, which the method reads or writes. Source: RFC 4918, section 10.3; S3
    // (`x-amz-copy-source`), Azure (`x-ms-copy-source`), OpenStack (`X-Copy-From`).
    "copy-from",
    "copy-source",
    "destination",
    "rename-source",
    // Another file than that of the path. Source: `Rack::Sendfile`, CVE-2025-61780.
    "accel-mapping",
    "accel-redirect",
    "sendfile",
];

/// What every client sends: allowed besides those that a grant names.
const USUAL: [&str; 7] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "content-encoding",
    "content-length",
    "content-type",
    "user-agent",
];

/// The header fields that a tool may send.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Headers {
    /// Every one, but for those that belong to the connection and those that make servers
    /// take a request for another one.
    #[default]
    Usual,
    /// These, by their names in lower case, and what every client sends: `accept`,
    /// `accept-encoding`, `accept-language`, `content-encoding`, `content-length`,
    /// `content-type` and `user-agent`.
    These(Vec<String>),
}

/// Why a header field cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// It is not a name of a header field.
    #[error("`{}` is not the name of a header field", shown(.0))]
    Token(String),
    /// One that belongs to the connection.
    #[error("`{0}` is decided by the host and cannot be granted")]
    Never(String),
}

impl Headers {
    /// Reads a list of names, in any case.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] for what is no name, and for a field that belongs to the connection.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, HeaderError> {
        let mut names = names.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        names.sort_unstable();
        names.dedup();
        Ok(Self::These(names))
    }

    /// Whether a tool may send a field.
    pub(crate) fn has(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let is_one_of = |names: &[&str]| names.contains(&&*name);
        match self {
            _ if is_one_of(&NEVER) => false,
            // Many servers take `_` and `.` for `-`.
            Self::Usual => {
                let name = format!("-{name}");
                !name.contains(['_', '.']) && !OVERRIDES.iter().any(|part| name.contains(part))
            }
            Self::These(names) => names.contains(&name) || is_one_of(&USUAL),
        }
    }

    /// Whether it has every field that the other one has.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Usual, Self::Usual) => true,
            (Self::These(_), Self::Usual) => false,
            (own, Self::These(names)) => names.iter().all(|name| own.has(name)),
        }
    }

    /// Those that a request needs which sends all of these.
    pub(crate) fn for_all(names: &[&str]) -> Result<Self, HeaderError> {
        let is_usual = |name: &&str| USUAL.iter().any(|usual| usual.eq_ignore_ascii_case(name));
        Self::new(names.iter().copied().filter(|name| !is_usual(name)))
    }

    /// The names as they would be typed. `None`: the default.
    pub(crate) fn typed(&self) -> Option<&[String]> {
        match self {
            Self::Usual => None,
            Self::These(names) => Some(names),
        }
    }
}

fn read(name: &str) -> Result<String, HeaderError> {
    let lower = name.to_ascii_lowercase();
    if !is_token(name) {
        return Err(HeaderError::Token(name.to_owned()));
    }
    match NEVER.contains(&&*lower) {
        true => Err(HeaderError::Never(lower)),
        false => Ok(lower),
    }
}

impl fmt::Display for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual => f.pad("all"),
            Self::These(names) => f.pad(&names.join(", ")),
        }
    }
}
