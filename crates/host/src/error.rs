//! What can go wrong on the host's side of a call.

use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_base::format_duration;
use kitbag_contract::{ErrorKind, LimitKind};

use kitbag_engine::LoadError;

/// A call that did not end with an answer of the tool.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The call used up one of its limits.
    #[error("limit: {kind} ({limit}): {}", kind.advice())]
    Limit {
        /// Which limit.
        kind: LimitKind,
        /// Its value, as a person writes it: `64 MiB`, `30s`.
        limit: String,
    },
    /// A grant cannot be given.
    #[error("denied: {0}")]
    Denied(String),
    /// The tool broke off: it panicked, ran into an instruction that cannot be
    /// executed, or left instead of answering.
    #[error("trap: {message}")]
    Trap {
        /// What happened; a panic's own message where there is one.
        message: String,
    },
    /// The tool answered with something that the contract does not allow.
    #[error("the tool's answer breaks the contract")]
    Contract(#[source] kitbag_contract::AnswerError),
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// As many calls run and wait as may.
    #[error(
        "busy: {running} calls run and {waiting} wait, which is as many as may; try again in {}",
        format_duration(*retry_after)
    )]
    Busy {
        /// How many run.
        running: usize,
        /// How many wait.
        waiting: usize,
        /// When there may be a place.
        retry_after: Duration,
    },
    /// Other calls have reserved the memory of the server, and go on.
    #[error(
        "busy: other calls have reserved the server's memory; try again in {}",
        format_duration(*retry_after)
    )]
    MemoryBusy {
        /// When there may be enough.
        retry_after: Duration,
    },
    /// The call may take more memory than there is for all calls together.
    #[error(
        "the call may take {needed}, its limit `memory` and what the host holds for it, and the \
         server has {memory} for all calls; lower the limit, or raise `memory` under `[serve]`"
    )]
    BeyondMemory {
        /// The call's limit, and the most that the host holds for it besides.
        needed: ByteSize,
        /// What the server has for calls.
        memory: ByteSize,
    },
    /// The component cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The host itself failed; a fault of kitbag or of the machine.
    #[error("internal error: {0}")]
    Internal(String),
}

impl CallError {
    /// The kind of the error.
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
