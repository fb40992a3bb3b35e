//! Processes of servers.
//!
//! [`start`] runs a program with pipes as standard streams. A *keeper* process is between kitbag and
//! the program. It ends everything that the program has started as soon as the program ends, or
//! kitbag ends in any way, or kitbag asks for it.
//!
//! A server with a [`Confinement`](kitbag_policy::server::Confinement) runs with few rights; see
//! `docs/servers-confinement.md`. If the system cannot enforce a part, the server does not start.

mod confinement;
mod error_lines;
mod program;
mod sys;
mod temporary;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kitbag_base::text::{shown, shown_path};
use kitbag_policy::SecretName;
use kitbag_policy::server::{ServerProcess, ServerValue};
use kitbag_secrets::{Redactor, SecretValue};

use self::error_lines::ErrorLines;
use self::sys::{Keeper, pipe};
use self::temporary::Temporary;

pub use self::confinement::Support;

/// The variables that each server inherits.
pub const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The surroundings in which a server starts.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// The name of the server, for the log.
    pub name: &'a str,
    /// The values of the secrets in the server's environment.
    pub secrets: &'a [(SecretName, Arc<SecretValue>)],
    /// The environment of kitbag.
    pub environment: &'a HashMap<OsString, OsString>,
    /// The directory in which temporary directories of servers are created.
    pub temporary: &'a Path,
    /// Paths that no confined server may reach: kitbag's state, configuration and cache.
    pub hidden: &'a [PathBuf],
    /// Paths that no confined server may change, even below a directory that it may write:
    /// `.kitbag` of a workspace.
    pub fixed: &'a [PathBuf],
    /// True to give confined servers their own namespaces if the system allows them. They add
    /// protection; without them, some calls are refused instead.
    pub namespaces: bool,
}

/// A server that was started.
#[derive(Debug)]
pub struct RunningServer {
    /// Standard input of the server.
    pub stdin: pipe::Sender,
    /// Standard output of the server.
    pub stdout: pipe::Receiver,
    /// The process. The server ends when this is dropped.
    pub process: ServerHandle,
}

/// The process of a server. It ends, with everything that it has started, when this is dropped.
#[derive(Debug)]
pub struct ServerHandle {
    keeper: Keeper,
    errors: Arc<ErrorLines>,
    // Removed after the keeper has ended, because fields are dropped in order.
    _temporary: Option<Temporary>,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an exit status.
    Status(u8),
    /// By a signal.
    Signal(u8),
}

/// Why a server was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The command names no program.
    #[error("cannot start `{}`: {reason}", shown(command))]
    Command {
        /// The first word of the command.
        command: String,
        /// The reason.
        reason: String,
    },
    /// A path of the confinement cannot be used.
    #[error("`confine.{key}` `{}`: {reason}", shown_path(path))]
    Path {
        /// `read` or `write`.
        key: &'static str,
        /// The path.
        path: PathBuf,
        /// The reason, and the way out.
        reason: String,
    },
    /// A secret of the environment has no value here.
    #[error("the variable `{variable}` needs the secret `{secret}`, which has no value")]
    Secret {
        /// The variable.
        variable: String,
        /// The secret.
        secret: SecretName,
    },
    /// This system cannot enforce a part of the confinement.
    #[error(
        "this system cannot confine the server: {0}; without `confine` it runs with all of your \
         rights"
    )]
    Confinement(String),
    /// A step failed.
    #[error("cannot start `{}`: {step}: {error}", shown(command))]
    Step {
        /// The first word of the command.
        command: String,
        /// The step.
        step: &'static str,
        /// The error of the system.
        error: std::io::Error,
    },
}

/// Returns what this system offers for confinement. The first call starts a process for a moment.
pub fn support() -> &'static Support {
    sys::support()
}

/// Starts a server. Blocks for some milliseconds.
///
/// # Errors
///
/// [`StartError`] if the program is not found, or cannot be started or confined as required.
///
/// # Panics
///
/// Outside a tokio runtime with I/O.
pub fn start(server: &ServerProcess, start: &Start<'_>) -> Result<RunningServer, StartError> {
    let command = server.command.first().map_or("", String::as_str);
    let step = |step: &'static str| {
        let command = command.to_owned();
        move |error: std::io::Error| StartError::Step { command, step, error }
    };
    let mut variables = variables(server, start)?;
    let path = variables.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let program = program::find(command, &server.directory, &path)
        .map_err(|reason| StartError::Command { command: command.to_owned(), reason })?;

    let mut temporary = None;
    let mut rules = None;
    let support = support().with_namespaces(start.namespaces);
    if let Some(confine) = &server.confine {
        let directory =
            Temporary::new(start.temporary).map_err(step("creating its temporary directory"))?;
        let private = directory.path().to_owned();
        let home = start.environment.get(OsStr::new("HOME")).map(PathBuf::from);
        let parts = program::parts(&program, &server.command[1..], &server.directory, &path)
            .into_iter()
            .filter(|part| confinement::is_program_directory(part, home.as_deref(), start.hidden))
            .collect();
        rules = Some(confinement::rules(confine, start, parts, &private, &support)?);
        let is_named = |name: &str| server.environment.iter().any(|it| it.name.as_str() == name);
        for name in ["HOME", "TMPDIR", "TMP", "TEMP"] {
            if !is_named(name) {
                variables.insert(name.into(), private.clone().into_os_string());
            }
        }
        temporary = Some(directory);
    }

    let job = sys::Job {
        program: &program,
        command: &server.command,
        variables: &variables,
        directory: &server.directory,
        rules: rules.as_ref(),
    };
    let started = sys::start(&job).map_err(|failure| StartError::Step {
        command: command.to_owned(),
        step: failure.step,
        error: failure.error,
    })?;
    let stdin = pipe::Sender::from_owned_fd(started.stdin).map_err(step("opening its input"))?;
    let stdout =
        pipe::Receiver::from_owned_fd(started.stdout).map_err(step("opening its output"))?;
    let stderr =
        pipe::Receiver::from_owned_fd(started.stderr).map_err(step("opening its error output"))?;
    let redactor = Redactor::new(start.secrets.iter().map(|(_, value)| &**value));
    let errors = Arc::new(ErrorLines::new(start.name.to_owned(), redactor));
    tokio::spawn(Arc::clone(&errors).read(stderr));
    let process = ServerHandle { keeper: started.keeper, errors, _temporary: temporary };
    Ok(RunningServer { stdin, stdout, process })
}

/// Returns the environment of a server.
fn variables(
    server: &ServerProcess,
    start: &Start<'_>,
) -> Result<HashMap<OsString, OsString>, StartError> {
    let mut variables = HashMap::new();
    let inherit = |variables: &mut HashMap<_, _>, name: &str| {
        if let Some((name, value)) = start.environment.get_key_value(OsStr::new(name)) {
            variables.insert(name.clone(), value.clone());
        }
    };
    for name in INHERITED {
        inherit(&mut variables, name);
    }
    for variable in &server.environment {
        let name = variable.name.as_str();
        match &variable.value {
            ServerValue::Text(text) => {
                variables.insert(name.into(), text.into());
            }
            ServerValue::Inherit => inherit(&mut variables, name),
            ServerValue::Secret(secret) => {
                let value = start.secrets.iter().find(|(known, _)| known == secret);
                let (_, value) = value.ok_or_else(|| StartError::Secret {
                    variable: name.to_owned(),
                    secret: secret.clone(),
                })?;
                variables.insert(name.into(), value.reveal().into());
            }
        }
    }
    Ok(variables)
}

impl ServerHandle {
    /// Returns the number of the keeper process.
    pub fn id(&self) -> u32 {
        self.keeper.id()
    }

    /// Returns the last lines of the server's standard error, without secrets and control
    /// characters.
    pub fn last_errors(&self) -> String {
        self.errors.last()
    }

    /// Waits until the server has ended, with everything that it had started.
    pub async fn ended(&mut self) -> Ended {
        self.keeper.ended().await
    }

    /// Ends the server. Close its standard input first. After half of `grace` it receives
    /// `SIGTERM`, after `grace` it is killed with everything that it has started.
    pub async fn end(&mut self, grace: Duration) -> Ended {
        if let Ok(ended) = tokio::time::timeout(grace / 2, self.keeper.ended()).await {
            return ended;
        }
        self.keeper.terminate();
        if let Ok(ended) = tokio::time::timeout(grace / 2, self.keeper.ended()).await {
            return ended;
        }
        self.keeper.kill();
        self.keeper.ended().await
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exit status {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}
