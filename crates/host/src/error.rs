//! Errors on the host's side of a call.

use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_base::format_duration;
use kitbag_contract::{ErrorKind, LimitKind};

use kitbag_engine::LoadError;

/// A call that ended without an answer from the tool.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The call exceeded one of its limits.
    #[error("limit: {kind} ({limit}): {}", kind.advice())]
    Limit {
        /// The limit.
        kind: LimitKind,
        /// Its value in a readable form: `64 MiB`, `30s`.
        limit: String,
    },
    /// A grant cannot be given.
    #[error("denied: {0}")]
    Denied(String),
    /// The tool failed: it panicked, executed an invalid instruction, or exited without an answer.
    #[error("trap: {message}")]
    Trap {
        /// The cause; for a panic, the panic's own message.
        message: String,
    },
    /// The tool's answer violates the contract.
    #[error("the tool's answer breaks the contract")]
    Contract(#[source] kitbag_contract::AnswerError),
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The maximum numbers of calls are running and waiting.
    #[error(
        "busy: {running} calls are running and {waiting} are waiting, which is the limit; try \
         again in {}",
        format_duration(*retry_after)
    )]
    Busy {
        /// Number of running calls.
        running: usize,
        /// Number of waiting calls.
        waiting: usize,
        /// Time after which to retry.
        retry_after: Duration,
    },
    /// Other running calls have reserved the server's memory.
    #[error(
        "busy: other calls have reserved the server's memory; try again in {}",
        format_duration(*retry_after)
    )]
    MemoryBusy {
        /// Time after which to retry.
        retry_after: Duration,
    },
    /// The call may need more memory than the server has for all calls together.
    #[error(
        "the call may need {needed} (its limit `memory` and memory of the host), but the server \
         has {memory} for all calls; lower the limit, or raise `memory` under `[serve]`"
    )]
    BeyondMemory {
        /// The call's memory limit plus the host memory for the call.
        needed: ByteSize,
        /// The server's memory for calls.
        memory: ByteSize,
    },
    /// The component cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The host failed: a fault of kitbag or of the machine.
    #[error("internal error: {0}")]
    Internal(String),
}

impl CallError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Limit { kind, .. } => ErrorKind::Limit(*kind),
            Self::Denied(_) => ErrorKind::GrantUnavailable,
            Self::Trap { .. } => ErrorKind::Trap,
            Self::Contract(_) => ErrorKind::Contract,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Busy { .. } | Self::MemoryBusy { .. } => ErrorKind::Busy,
            Self::BeyondMemory { .. } => ErrorKind::Size,
            Self::Load(error) => error.kind(),
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        Self::Internal(error.to_string())
    }
}
