//! Why there is no response.

use std::fmt;

use kitbag_policy::http::HttpRefusal;

/// An error of the tool's own body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a request has no response, or its response no end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    /// Nothing allows it, or it is beyond a limit.
    #[error(transparent)]
    Refused(#[from] HttpRefusal),
    /// Its host has no address.
    #[error("the host `{host}` cannot be resolved: {reason}")]
    Name {
        /// The host.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// No address of its host takes a connection.
    #[error("cannot connect to `{origin}`: {reason}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// What the system said of the last address.
        reason: String,
        /// Whether the connection was refused.
        is_refused: bool,
    },
    /// There is no TLS with the server.
    #[error("no TLS with `{origin}`: {reason}")]
    Tls {
        /// Scheme, host and port.
        origin: String,
        /// What is wrong.
        reason: String,
        /// Whether it is the server's certificate.
        is_certificate: bool,
    },
    /// The proxy opens no tunnel.
    #[error("the proxy `{proxy}` opens no connection to `{origin}`: {reason}")]
    Proxy {
        /// The proxy, as it was configured, without its credentials.
        proxy: String,
        /// Scheme, host and port.
        origin: String,
        /// What it said.
        reason: String,
    },
    /// A time that the tool itself set has passed.
    #[error("the time that the tool set for {0} has passed")]
    Time(TimePhase),
    /// The server does not speak HTTP as it should, or broke off.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// The server wants another protocol.
    #[error("the server switches to another protocol, which no tool may")]
    Upgrade,
    /// The response is encoded so that it cannot be looked into.
    #[error("the response has the encoding `{0}`, which cannot be looked into")]
    Encoding(String),
    /// The call has ended.
    #[error("the call has ended")]
    Ended,
    /// The host itself failed.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What a tool set a time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePhase {
    /// Until there is a connection.
    Connect,
    /// Until the response begins.
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
    /// What a body says, or what lies below it where that is an error of ours.
    pub(crate) fn of_body(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(error) => Self::Protocol(error.to_string()),
        }
    }

    /// What hyper says, or what lies below it where that is an error of ours.
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
