//! Why a value cannot be read.

use std::time::Duration;

use kitbag_base::shell;
use kitbag_base::text::shown;
use kitbag_policy::SecretName;

use crate::value::ValueError;

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is none.
    #[error(
        "it has no value; set one with `{}`",
        shell::command(["kitbag", "secret", "set", name.as_str()])
    )]
    Missing {
        /// The secret.
        name: SecretName,
    },
    /// The variable is not set.
    #[error("the variable `{}` is not set", shown(name))]
    NoVariable {
        /// The variable.
        name: String,
    },
    /// The command could not be started.
    #[error("`{}` cannot be started: {reason}", shown(program))]
    NotStarted {
        /// The program.
        program: String,
        /// Why not.
        reason: String,
    },
    /// The command failed.
    #[error("`{}` failed ({status}); run it by itself to see why", shown(program))]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
    },
    /// The command did not end in time.
    #[error("`{}` did not end within {} s", shown(program), time.as_secs())]
    TookTooLong {
        /// The program.
        program: String,
        /// How long it had.
        time: Duration,
    },
    /// The command reads the terminal, which it does not have.
    #[error(
        "`{}` asks on the terminal, which it does not have; unlock what it reads before, or let \
         it ask in a window",
        shown(program)
    )]
    Stopped {
        /// The program.
        program: String,
    },
    /// The call that needs it has ended.
    #[error("the call that needs it has ended")]
    CallEnded,
    /// What was read is no value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The store cannot be read.
    #[error("{reason}")]
    Store {
        /// Why not.
        reason: String,
    },
}

impl ReadError {
    /// There is no value of this name.
    pub fn missing(name: &SecretName) -> Self {
        Self::Missing { name: name.clone() }
    }
}
