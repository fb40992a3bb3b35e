//! Why a request over HTTP was refused.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decision::MissingGrant;
use crate::http::pattern::UrlPattern;

/// What of a request is refused: what programs act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The scheme: neither `https` nor `http`, or one that no grant has for the host.
    Scheme,
    /// The host or the port: not written plainly, not granted, or denied.
    Host,
    /// An address of the host, which is not one of the public internet.
    Address,
    /// The path or the query: not written plainly, or not granted.
    Path,
    /// The method: none at all, or not granted.
    Method,
    /// A header field.
    Header,
    /// The size of the address, of a header field or of a body.
    Size,
    /// The number of requests.
    Rate,
    /// The time that it may take.
    Time,
    /// Something in it that looks like a key or a token.
    Leak,
    /// The value or the placeholder of a secret, where the secret does not go.
    Secret,
    /// A secret that the request needs, which cannot be read.
    Unreadable,
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct HttpRefusal {
    /// What of it is refused.
    pub kind: RefusalKind,
    /// Why, in a line.
    pub reason: String,
    /// What would allow it. `None`: no grant can.
    pub missing: Option<MissingGrant>,
    /// The pattern that denies it, where one does.
    pub denied_by: Option<Box<UrlPattern>>,
    /// The rule that found a leak, or the secret that cannot be read.
    pub by: Option<Box<str>>,
}

impl HttpRefusal {
    /// A refusal that no grant changes.
    pub fn new(kind: RefusalKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), missing: None, denied_by: None, by: None }
    }

    /// A refusal by what is denied.
    pub(crate) fn denied(kind: RefusalKind, reason: String, pattern: &UrlPattern) -> Self {
        Self { denied_by: Some(Box::new(pattern.clone())), ..Self::new(kind, reason) }
    }
}

impl RefusalKind {
    /// Its name, as programs read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheme => "scheme",
            Self::Host => "host",
            Self::Address => "address",
            Self::Path => "path",
            Self::Method => "method",
            Self::Header => "header",
            Self::Size => "size",
            Self::Rate => "rate",
            Self::Time => "time",
            Self::Leak => "leak",
            Self::Secret => "secret",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for RefusalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
