//! The header fields that a tool may send.

use std::fmt;

use kitbag_base::text::shown;

use crate::http::method::is_token;

/// Fields that the host or the connection controls. No tool can send them.
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

/// Parts of names, with a `-` assumed before each name. Fields with such a name make some servers
/// act on a different request than was decided on: another method, path, host, client or user. A
/// tool can send them only if its grant names them.
///
/// `tests/http/overrides.txt` lists the complete names.
const OVERRIDES: [&str; 56] = [
    // The method. Source: `method-override` of Express, which lists the fields of Google, Microsoft
    // and IBM.
    "method",
    "override",
    "verb",
    // The path before a proxy changed it. Source: CVE-2018-14773 (Symfony, Zend), CVE-2025-29927
    // (Next.js), ingress-nginx, `x-envoy-original-path`, `X-Replaced-Path` of Traefik, and the list
    // of PortSwigger's Param Miner.
    "-original-",
    "-path",
    "-uri",
    "-url",
    "middleware",
    "rewrite",
    "script-name",
    // The host and scheme. Source: RFC 7239 and its predecessors; `Front-End-Https` of Microsoft,
    // and HTTP Host header attacks of PortSwigger.
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
    // The user whom a reverse proxy has authenticated. Source: Grafana and Authelia (`Remote-User`,
    // `X-WEBAUTH-USER`), nginx and Apache (`X-SSL-Client-S-DN`), RFC 9440 (`Client-Cert`),
    // oauth2-proxy, Cloudflare Access, Google IAP, Tailscale, Azure App Service, AWS load
    // balancers, Authentik, Pomerium, Vouch, Kong, Kubernetes, WebSEAL, SiteMinder,
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
    // A second path that the method reads or writes. Source: RFC 4918, section 10.3; S3
    // (`x-amz-copy-source`), Azure (`x-ms-copy-source`), OpenStack (`X-Copy-From`).
    "copy-from",
    "copy-source",
    "destination",
    "rename-source",
    // A different file than the path's. Source: `Rack::Sendfile`, CVE-2025-61780.
    "accel-mapping",
    "accel-redirect",
    "sendfile",
];

/// Fields that every client sends. They are permitted in addition to the granted ones.
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
    /// All fields except those of the connection and those that make servers act on a different
    /// request.
    #[default]
    Usual,
    /// The fields with these lower-case names, and the fields that every client sends: `accept`,
    /// `accept-encoding`, `accept-language`, `content-encoding`, `content-length`, `content-type`
    /// and `user-agent`.
    These(Vec<String>),
    /// All fields except those of the connection, for requests whose fields kitbag sets itself. No
    /// configuration can grant this.
    Any,
}

/// Why a header field cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The string is not the name of a header field.
    #[error("`{}` is not the name of a header field", shown(.0))]
    Token(String),
    /// The field belongs to the connection.
    #[error("`{0}` is set by the host and cannot be granted")]
    Never(String),
}

impl Headers {
    /// Parses a list of names, ignoring case.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] for an invalid name and for a field of the connection.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, HeaderError> {
        let mut names = names.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        names.sort_unstable();
        names.dedup();
        Ok(Self::These(names))
    }

    /// Returns true if a tool may send a field.
    pub(crate) fn has(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let is_one_of = |names: &[&str]| names.contains(&&*name);
        match self {
            _ if is_one_of(&NEVER) => false,
            Self::Any => true,
            // Many servers treat `_` and `.` as `-`.
            Self::Usual => {
                let name = format!("-{name}");
                !name.contains(['_', '.']) && !OVERRIDES.iter().any(|part| name.contains(part))
            }
            Self::These(names) => names.contains(&name) || is_one_of(&USUAL),
        }
    }

    /// Returns true if all fields of `other` are permitted.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Usual, Self::Usual) | (Self::Any, _) => true,
            (Self::These(_), Self::Usual) | (_, Self::Any) => false,
            (own, Self::These(names)) => names.iter().all(|name| own.has(name)),
        }
    }

    /// Returns the fields to grant for a request that sends all of these.
    pub(crate) fn for_all(names: &[&str]) -> Result<Self, HeaderError> {
        let is_usual = |name: &&str| USUAL.iter().any(|usual| usual.eq_ignore_ascii_case(name));
        Self::new(names.iter().copied().filter(|name| !is_usual(name)))
    }

    /// Returns the names as they would be typed. `None`: the default.
    pub(crate) fn typed(&self) -> Option<&[String]> {
        match self {
            Self::Usual | Self::Any => None,
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
            Self::Usual | Self::Any => f.pad("all"),
            Self::These(names) => f.pad(&names.join(", ")),
        }
    }
}
