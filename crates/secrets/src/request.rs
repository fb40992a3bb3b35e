//! A request as plain text and bytes, and why one does not go out.

use std::fmt;

use kitbag_base::text::shown;
use kitbag_policy::SecretName;

use crate::fingerprint::Fingerprint;
use crate::read_error::ReadError;

/// A request before it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainRequest {
    /// Host and port as they are dialled. They are looked at and not changed.
    pub authority: String,
    /// The path, percent-encoded.
    pub path: String,
    /// The query, percent-encoded, without its `?`.
    pub query: Option<String>,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The whole body. `content-length` is left to the caller, who knows how it is sent.
    pub body: Option<Vec<u8>>,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// The host or the port.
    Host,
    /// The path.
    Path,
    /// The query.
    Query,
    /// A header.
    Header(String),
    /// The body.
    Body,
}

impl fmt::Display for RequestPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("the host"),
            Self::Path => f.write_str("the path"),
            Self::Query => f.write_str("the query"),
            Self::Header(name) => write!(f, "the header `{}`", shown(name)),
            Self::Body => f.write_str("the body"),
        }
    }
}

/// Why a request is not sent. None of it shows a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretRefusal {
    /// It holds something that looks like a key or a token.
    #[error(
        "{part} holds what looks like {what} (rule `{rule}`, fingerprint `{fingerprint}`); a \
         request gets its credentials from the host"
    )]
    Leak {
        /// Where.
        part: RequestPart,
        /// What it looks like.
        what: String,
        /// The rule that found it.
        rule: String,
        /// By which the user can allow it.
        fingerprint: Fingerprint,
    },
    /// It holds the value of a secret of the tool, which no tool is given.
    #[error("{part} holds the value of a secret")]
    Value {
        /// Where.
        part: RequestPart,
    },
    /// It carries a placeholder where its secret does not go.
    #[error("{part} holds the placeholder of a secret that does not go there")]
    Placeholder {
        /// Where.
        part: RequestPart,
    },
    /// It brings credentials of its own to a place that a secret is bound to.
    #[error(
        "{part} is set by the host here, to the secret `{secret}`; leave it out, or use the \
         secret's placeholder"
    )]
    OwnCredentials {
        /// Where.
        part: RequestPart,
        /// The secret that is bound to the place.
        secret: SecretName,
    },
    /// It asks for a part of a response, from a server that may know a secret.
    #[error(
        "{part} asks for a part of a response, of which two could show the secret `{secret}` half \
         each; leave it out"
    )]
    Range {
        /// The header.
        part: RequestPart,
        /// The secret.
        secret: SecretName,
    },
    /// Two secrets would stand in one place.
    #[error("{part} would hold two secrets, `{one}` and `{other}`")]
    Two {
        /// Where.
        part: RequestPart,
        /// The first.
        one: SecretName,
        /// The other.
        other: SecretName,
    },
    /// A secret that the request needs cannot be read.
    #[error("the secret `{secret}` cannot be read")]
    Unreadable {
        /// Which.
        secret: SecretName,
        /// Why.
        #[source]
        error: ReadError,
    },
}
