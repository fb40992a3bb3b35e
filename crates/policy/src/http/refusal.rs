//! Refusals of HTTP requests.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decision::MissingGrant;

/// The refused part of a request, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The scheme is not `https` or `http`, or is not granted for the host.
    Scheme,
    /// The host or port is not in canonical form, not granted, or denied.
    Host,
    /// An address of the host is not on the public internet.
    Address,
    /// The path or query is not in canonical form or not granted.
    Path,
    /// The method is not valid or not granted.
    Method,
    /// A header field.
    Header,
    /// The size of the URL, a header field or a body.
    Size,
    /// The number of requests.
    Rate,
    /// The time of the request.
    Time,
    /// The request contains something that looks like a key or token.
    Leak,
    /// The request contains the value or placeholder of a secret that may not be sent there.
    Secret,
    /// A required secret cannot be read.
    Unreadable,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct HttpRefusal {
    /// The refused part of the request.
    pub kind: RefusalKind,
    /// The reason, in one line.
    pub reason: String,
    /// The grant that would allow the request. `None`: no grant can.
    pub missing: Option<MissingGrant>,
    /// The pattern that denies the request, the rule that found a leak, or the secret that cannot be
    /// read.
    pub by: Option<Box<str>>,
}

impl HttpRefusal {
    /// Creates a refusal that no grant can change.
    pub fn new(kind: RefusalKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), missing: None, by: None }
    }

    /// Creates a refusal by a denied pattern.
    pub(crate) fn denied(kind: RefusalKind, reason: String, pattern: String) -> Self {
        Self { by: Some(pattern.into()), ..Self::new(kind, reason) }
    }
}

impl RefusalKind {
    /// Returns the name for programs.
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
