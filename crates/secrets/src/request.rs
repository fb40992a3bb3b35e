//! Requests as plain text and bytes, and refusals.

use std::fmt;

use kitbag_base::text::shown;
use kitbag_policy::SecretName;

use crate::fingerprint::Fingerprint;
use crate::read_error::ReadError;

/// A request before it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainRequest {
    /// The host and port to connect to. They are checked but not changed.
    pub authority: String,
    /// The path, percent-encoded.
    pub path: String,
    /// The query, percent-encoded, without `?`.
    pub query: Option<String>,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The complete body. The caller sets `content-length`, since it chooses the transfer encoding.
    pub body: Option<Vec<u8>>,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// Host and port.
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

/// Why a request is not sent. No message shows a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretRefusal {
    /// The request contains something that looks like a key or token.
    #[error(
        "{part} contains what looks like {what} (rule `{rule}`, fingerprint `{fingerprint}`); the \
         host adds the credentials of a request"
    )]
    Leak {
        /// The part with the finding.
        part: RequestPart,
        /// The description of the finding.
        what: String,
        /// The rule that found it.
        rule: String,
        /// The fingerprint with which the user can allow the finding.
        fingerprint: Fingerprint,
    },
    /// The request contains the value of one of the tool's secrets, which no tool receives.
    #[error("{part} contains the value of a secret")]
    Value {
        /// The part with the value.
        part: RequestPart,
    },
    /// The request contains the placeholder of a secret that may not be sent to this destination.
    #[error("{part} contains the placeholder of a secret that may not be sent there")]
    Placeholder {
        /// The part with the placeholder.
        part: RequestPart,
    },
    /// The request has its own credentials for a destination to which a secret is bound.
    #[error(
        "{part} is set by the host to the secret `{secret}`; remove it, or use the secret's \
         placeholder"
    )]
    OwnCredentials {
        /// The part with the credentials.
        part: RequestPart,
        /// The bound secret.
        secret: SecretName,
    },
    /// The request asks a server that may know a secret for a part of a response.
    #[error(
        "{part} requests a part of a response, and two parts could each contain half of the secret \
         `{secret}`; remove the header"
    )]
    Range {
        /// The header.
        part: RequestPart,
        /// The name of the secret.
        secret: SecretName,
    },
    /// Two secrets would be in the same part.
    #[error("{part} would contain two secrets, `{one}` and `{other}`")]
    Two {
        /// The part.
        part: RequestPart,
        /// The first secret.
        one: SecretName,
        /// The second secret.
        other: SecretName,
    },
    /// A required secret cannot be read.
    #[error("the secret `{secret}` cannot be read")]
    Unreadable {
        /// The name of the secret.
        secret: SecretName,
        /// The reason.
        #[source]
        error: ReadError,
    },
}
