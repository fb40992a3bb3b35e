//! Errors of registries.

use kitbag_http::RequestError;
use kitbag_policy::http::RefusalKind;

use crate::digest::Sha256Digest;

/// Why something cannot be pulled, pushed or verified.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A request failed.
    #[error("`{url}`: {source}")]
    Request {
        /// The URL.
        url: String,
        /// The reason.
        source: Box<RequestError>,
    },
    /// The registry is on this machine or in a private network, and no configuration names it.
    #[error(
        "`{host}` is on this machine or in a private network; if you trust it, write \
         `private = true` into `[registries.\"{host}\"]` of your user config"
    )]
    Private {
        /// The registry.
        host: String,
    },
    /// The registry redirects to a server that must not be used.
    #[error("`{url}` redirects to `{target}`, {reason}")]
    Redirect {
        /// The URL.
        url: String,
        /// The URL of the other server, without its query.
        target: String,
        /// The reason, and the setting that allows the server if there is one.
        reason: String,
    },
    /// The registry has no such content.
    #[error("`{url}` does not exist{details}")]
    NotFound {
        /// The URL.
        url: String,
        /// The registry's own message.
        details: String,
    },
    /// The registry requires credentials, or does not accept them.
    #[error(
        "`{host}` refuses access to `{url}`{details}; log in with `docker login {host}`, or set \
         `username` and `secret` in `[registries.\"{host}\"]` of your user config"
    )]
    Denied {
        /// The registry.
        host: String,
        /// The URL.
        url: String,
        /// The registry's own message.
        details: String,
    },
    /// The registry answered with another error.
    #[error("`{url}`: the registry answered with the status {status}{details}")]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
        /// The registry's own message.
        details: String,
    },
    /// Content does not have the requested digest.
    #[error("`{url}` has the digest {found}, but {expected} was expected")]
    Digest {
        /// The URL.
        url: String,
        /// The requested digest.
        expected: Sha256Digest,
        /// The digest of the content.
        found: Sha256Digest,
    },
    /// Content does not have the declared size, or exceeds a limit.
    #[error("`{url}` {problem}")]
    Size {
        /// The URL.
        url: String,
        /// The problem.
        problem: String,
    },
    /// An answer violates the protocol.
    #[error("`{url}`: {problem}")]
    Invalid {
        /// The URL or the reference.
        url: String,
        /// The problem.
        problem: String,
    },
    /// A signature is required, but no signature meets the requirement.
    #[error("{0}")]
    Signature(String),
    /// A key or a trust root cannot be used.
    #[error("{0}")]
    Key(String),
    /// Credentials cannot be read.
    #[error("{0}")]
    Credentials(String),
}

impl RegistryError {
    pub(crate) fn request(url: &str, host: &str, source: RequestError) -> Self {
        match source {
            RequestError::Refused(refusal) if refusal.kind == RefusalKind::Address => {
                Self::Private { host: host.to_owned() }
            }
            source => Self::Request { url: url.to_owned(), source: Box::new(source) },
        }
    }

    pub(crate) fn invalid(url: impl Into<String>, problem: impl ToString) -> Self {
        Self::Invalid { url: url.into(), problem: problem.to_string() }
    }
}
