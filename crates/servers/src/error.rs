//! Errors of servers.

use std::time::Duration;

use kitbag_base::text::shown;
use kitbag_base::{format_duration, shell};
use kitbag_policy::server::ServerName;

/// Why a server did not answer a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The server could not be started or connected to.
    #[error("the server `{server}` did not start: {reason}")]
    Start {
        /// The server.
        server: ServerName,
        /// The reason, with the end of the server's standard error.
        reason: String,
    },
    /// A person has to sign in to the server.
    #[error("the server `{server}` {reason}")]
    SignIn {
        /// The server.
        server: ServerName,
        /// The requirement, as a verb phrase with the command.
        reason: String,
    },
    /// The server failed recently, and is not started again yet.
    #[error(
        "the server `{server}` failed: {reason}; it is started again in {}",
        format_duration(rounded(*.retry_after))
    )]
    Backoff {
        /// The server.
        server: ServerName,
        /// The last failure.
        reason: String,
        /// The time until the next start.
        retry_after: Duration,
    },
    /// The connection ended during the call.
    #[error("the server `{server}` ended during the call: {reason}")]
    Ended {
        /// The server.
        server: ServerName,
        /// The reason.
        reason: String,
    },
    /// The tool is not the one that was added.
    #[error(
        "the {part} of `{}` at the server `{server}` changed; `{}` shows the difference",
        shown(tool),
        update(server)
    )]
    Changed {
        /// The server.
        server: ServerName,
        /// The server's name of the tool.
        tool: String,
        /// The changed part.
        part: &'static str,
    },
    /// The server no longer has the tool.
    #[error(
        "the server `{server}` no longer has a tool `{}`; `{}` shows its tools",
        shown(tool),
        update(server)
    )]
    Absent {
        /// The server.
        server: ServerName,
        /// The server's name of the tool.
        tool: String,
    },
    /// The server answered with an error of the protocol.
    #[error("{message}")]
    Answered {
        /// The server's message. Untrusted text.
        message: String,
    },
    /// The server sent something that the protocol does not allow or that kitbag does not offer.
    #[error("the server `{server}` {reason}")]
    Protocol {
        /// The server.
        server: ServerName,
        /// Its action, as a verb phrase.
        reason: String,
    },
}

/// Why a server did not start, or a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartFailure {
    /// A person has to sign in. A verb phrase with the command.
    SignIn(String),
    /// Another reason, as a sentence about the server.
    Other(String),
}

impl StartFailure {
    /// Returns the error of a start.
    pub(crate) fn of_start(self, server: ServerName) -> ServerError {
        match self {
            Self::SignIn(reason) => ServerError::SignIn { server, reason },
            Self::Other(reason) => ServerError::Start { server, reason },
        }
    }

    /// Changes the text.
    pub(crate) fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::SignIn(reason) => Self::SignIn(change(reason)),
            Self::Other(reason) => Self::Other(change(reason)),
        }
    }
}

impl From<String> for StartFailure {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

impl ServerError {
    /// Returns true if the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Start { .. } | Self::Backoff { .. } | Self::Ended { .. })
    }

    /// Returns true if the tool is refused because it is not as recorded.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Changed { .. } | Self::Absent { .. })
    }
}

/// Rounds a delay up to tenths of a second.
fn rounded(delay: Duration) -> Duration {
    const TENTH: u128 = 100;
    let tenths = delay.as_millis().div_ceil(TENTH);
    Duration::from_millis((tenths * TENTH).try_into().unwrap_or(u64::MAX))
}

/// Returns the command that shows the difference and records the tools.
fn update(server: &ServerName) -> String {
    shell::command(["kitbag", "update", server.as_str()])
}
