//! Errors of reading values.

use std::time::Duration;

use kitbag_base::shell;
use kitbag_base::text::shown;
use kitbag_policy::SecretName;

use crate::value::ValueError;

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The secret has no value.
    #[error(
        "it has no value; set one with `{}`",
        shell::command(["kitbag", "secret", "set", name.as_str()])
    )]
    Missing {
        /// The name of the secret.
        name: SecretName,
    },
    /// The variable is not set.
    #[error("the variable `{}` is not set", shown(name))]
    NoVariable {
        /// The name of the variable.
        name: String,
    },
    /// The command could not be started.
    #[error("`{}` cannot be started: {reason}", shown(program))]
    NotStarted {
        /// The program.
        program: String,
        /// The reason.
        reason: String,
    },
    /// The command failed.
    #[error("`{}` failed ({status}); run it separately to see why", shown(program))]
    Failed {
        /// The program.
        program: String,
        /// The exit status.
        status: String,
    },
    /// The command did not end in time.
    #[error("`{}` did not end within {} s", shown(program), time.as_secs())]
    TookTooLong {
        /// The program.
        program: String,
        /// The time limit.
        time: Duration,
    },
    /// The command reads the terminal, which is not available.
    #[error(
        "`{}` reads the terminal, which is not available; unlock its store first, or let it \
         prompt in a window",
        shown(program)
    )]
    Stopped {
        /// The program.
        program: String,
    },
    /// The call that needs the value has ended.
    #[error("the call that needs it has ended")]
    CallEnded,
    /// The result is not a valid value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The store cannot be read.
    #[error("{reason}")]
    Store {
        /// The reason.
        reason: String,
    },
}

impl ReadError {
    /// Creates the error for a missing value.
    pub fn missing(name: &SecretName) -> Self {
        Self::Missing { name: name.clone() }
    }
}
