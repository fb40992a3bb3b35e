//! Errors of requests.

use std::fmt;

use kitbag_policy::http::HttpRefusal;

/// An error of the tool's own body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a request has no response, or the response is incomplete.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    /// The request is not allowed or exceeds a limit.
    #[error(transparent)]
    Refused(#[from] HttpRefusal),
    /// The host has no address.
    #[error("the host `{host}` cannot be resolved: {reason}")]
    Name {
        /// The name of the host.
        host: String,
        /// The message of the resolver.
        reason: String,
    },
    /// No address of the host accepts a connection.
    #[error("cannot connect to `{origin}`: {reason}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// The error of the system for the last address.
        reason: String,
        /// True if the connection was refused.
        is_refused: bool,
    },
    /// The TLS handshake failed.
    #[error("no TLS connection to `{origin}`: {reason}")]
    Tls {
        /// Scheme, host and port.
        origin: String,
        /// The reason.
        reason: String,
        /// True if the server's certificate is not valid.
        is_certificate: bool,
    },
    /// The proxy did not open a tunnel.
    #[error("the proxy `{proxy}` did not open a connection to `{origin}`: {reason}")]
    Proxy {
        /// The configured proxy, without credentials.
        proxy: String,
        /// Scheme, host and port.
        origin: String,
        /// The response of the proxy.
        reason: String,
    },
    /// A time limit of the tool itself is over.
    #[error("the time that the tool set for {0} has passed")]
    Time(TimePhase),
    /// The server violated the HTTP protocol or closed the connection.
    #[error("the server violated the protocol: {0}")]
    Protocol(String),
    /// The server requires another protocol.
    #[error("the server switches to another protocol, which is not supported")]
    Upgrade,
    /// The response has an encoding that cannot be decoded.
    #[error("the response has the encoding `{0}`, which cannot be decoded")]
    Encoding(String),
    /// The call has ended.
    #[error("the call has ended")]
    Ended,
    /// The host itself failed.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The phase of a request with its own time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePhase {
    /// Until a connection is open.
    Connect,
    /// Until the response starts.
    FirstByte,
    /// Between two parts of the response.
    BetweenBytes,
}

impl fmt::Display for TimePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "the connection",
            Self::FirstByte => "the first byte",
            Self::BetweenBytes => "the next bytes",
        })
    }
}

impl RequestError {
    /// Converts an error of a body, or returns our own error inside it.
    pub(crate) fn of_body(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(error) => Self::Protocol(error.to_string()),
        }
    }

    /// Converts an error of hyper, or returns our own error inside it.
    pub(crate) fn of_hyper(error: &hyper::Error) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(own) = error.downcast_ref::<Self>() {
                return own.clone();
            }
            cause = error.source();
        }
        let mut text = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            text = format!("{text}: {source}");
        }
        Self::Protocol(text)
    }
}
