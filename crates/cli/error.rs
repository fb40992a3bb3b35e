//! The format of every error: *error*, *caused by*, *hint*, and an exit code.

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use kitbag::BuildError;
use kitbag::audit::AuditError;
use kitbag::base::shell;
use kitbag::base::text::alternatives;
use kitbag::config::{ConfigErrors, ConfiguredTool, Origin};
use kitbag::contract::{ErrorKind, LimitKind, barred};
use kitbag::host::{CallError, LoadError, StorageError};
use kitbag::secret_store::StoreError;
use kitbag::secrets::ReadError;
use kitbag::toolbox::NotApproved;
use kitbag::{Question, ToolboxError, TrustQuestionError};
use kitbag_registry::RegistryError;
use serde_json::{Value, json};

use crate::exit::{self, Exit};
use crate::labels::labelled;
use crate::sys;

/// A problem that `kitbag check` finds.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The subject: a tool, a topic, or the configuration.
    pub(crate) about: String,
    pub(crate) text: String,
    pub(crate) kind: ErrorKind,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The command line is wrong in a way that its parser cannot detect.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Configuration(#[from] ConfigErrors),
    /// An error of a tool or a call.
    #[error(transparent)]
    Toolbox(#[from] ToolboxError),
    /// The audit log cannot be read, or was modified.
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error("the tool asks `{}`: {}", .0.id, barred(&.0.text))]
    Question(Box<Question>),
    /// A component on the command line cannot be loaded.
    #[error(transparent)]
    Component(LoadError),
    /// A file on the command line cannot be read.
    #[error("`{path}` cannot be read")]
    Read {
        path: String,
        #[source]
        source: io::Error,
    },
    /// A workspace cannot be trusted, or its trust cannot be revoked.
    #[error(transparent)]
    Trust(#[from] TrustQuestionError),
    /// A person did not approve the workspace's requests.
    #[error("{0}")]
    NotTrusted(&'static str),
    /// The cache cannot be listed or cleared.
    #[error(transparent)]
    Cache(#[from] kitbag::host::CacheError),
    #[cfg(feature = "serve")]
    #[error("the path of this program cannot be determined")]
    Program(#[source] io::Error),
    /// The server did not start, or ended unexpectedly.
    #[cfg(feature = "serve")]
    #[error("{0}")]
    Serve(String, #[source] Box<dyn Error + Send + Sync>),
    /// A secret cannot be read.
    #[error("the secret `{name}` cannot be read")]
    Secret {
        name: String,
        #[source]
        source: ReadError,
    },
    #[error("the store of secrets cannot be opened")]
    ClosedStore(#[source] ReadError),
    #[error(transparent)]
    SecretStore(#[from] StoreError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("standard output cannot be written")]
    Output(#[source] io::Error),
    /// A file of `--save` cannot be written.
    #[error("`{path}` cannot be written")]
    Save {
        path: String,
        #[source]
        source: io::Error,
    },
    /// An error with a more specific hint.
    #[error("{error}")]
    Hinted { error: Box<CliError>, hint: String },
    /// A tool cannot be pulled, pushed or verified.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] kitbag_state::StateError),
    /// An error of a cluster: of NATS, a key or a snapshot.
    #[cfg(feature = "nats")]
    #[error("{0}")]
    Cluster(Box<dyn Error + Send + Sync>),
    /// A problem found by `kitbag check`.
    #[error("{}: {}", .0.about, .0.text)]
    Faulty(Finding),
    /// A person did not consent, or could not be asked.
    #[error("{0}")]
    NotAgreed(String),
    /// A program that builds a tool failed, or could not be started.
    #[error("`{command}` {}", if source.is_some() { "cannot be started" } else { "failed" })]
    Build {
        command: String,
        #[source]
        source: Option<io::Error>,
    },
    /// An operation failed because too few files can be opened.
    #[error("this process may have only {limit} files open at once")]
    OpenFiles {
        limit: u64,
        #[source]
        source: Option<Box<CliError>>,
    },
}

impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Config(errors) => errors.into(),
            BuildError::Tool(error) => error.into(),
            #[cfg(feature = "servers")]
            BuildError::Server(error) => Self::Usage(error.to_string()),
        }
    }
}

impl CliError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(_)
            | Self::Read { .. }
            | Self::Build { .. }
            | Self::Trust(TrustQuestionError::Nothing { .. })
            | Self::Component(LoadError::NotFound { .. }) => ErrorKind::Usage,
            Self::Configuration(_) => ErrorKind::Configuration,
            Self::Faulty(finding) => finding.kind,
            Self::Question(_) => ErrorKind::Unanswered,
            Self::NotTrusted(_) | Self::NotAgreed(_) => ErrorKind::NoConsent,
            Self::Trust(_) => ErrorKind::Untrusted,
            Self::Toolbox(error) => error.kind(),
            Self::Component(error) => error.kind(),
            Self::Cache(_)
            | Self::Secret { .. }
            | Self::ClosedStore(_)
            | Self::SecretStore(_)
            | Self::Audit(_)
            | Self::State(_)
            | Self::Storage(_) => ErrorKind::Inaccessible,
            #[cfg(feature = "serve")]
            Self::Program(_) | Self::Serve(..) => ErrorKind::Inaccessible,
            #[cfg(feature = "nats")]
            Self::Cluster(error) => crate::commands::cluster::kind(&**error),
            Self::Registry(error) => match error {
                RegistryError::NotFound { .. }
                | RegistryError::Invalid { .. }
                | RegistryError::Key(_) => ErrorKind::Usage,
                RegistryError::Digest { .. }
                | RegistryError::Size { .. }
                | RegistryError::Signature(_) => ErrorKind::Changed,
                RegistryError::Private { .. } | RegistryError::Redirect { .. } => {
                    ErrorKind::Untrusted
                }
                _ => ErrorKind::Inaccessible,
            },
            Self::Output(_) | Self::Save { .. } => ErrorKind::Output,
            Self::OpenFiles { .. } => ErrorKind::OpenFiles,
            Self::Hinted { error, .. } => error.kind(),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        exit::of_kind(self.kind()).0
    }

    /// Returns the error, or the shortage of open files that caused it.
    pub(crate) fn or_open_files(self) -> Self {
        match self.exit() {
            Exit::Usage | Exit::Question | Exit::Interrupted | Exit::Output => self,
            _ => match sys::shortage() {
                None => self,
                Some(limit) => Self::OpenFiles { limit, source: Some(Box::new(self)) },
            },
        }
    }

    /// Returns the fix, if the message does not contain it already.
    fn hint(&self) -> Option<String> {
        match self {
            Self::Question(question) => {
                let expectation = question.answer_type.expectation();
                let who = if question.is_consent { "a person consents" } else { "answer" };
                let id = shell::quoted(&question.id);
                let mut hint = format!("{who} with `--answer {id}=…`: {expectation}");
                if let Some(default) = &question.default {
                    let _ = write!(hint, " (suggested: {default})");
                }
                Some(hint)
            }
            Self::Toolbox(ToolboxError::NotApproved {
                why: NotApproved::NobodyToAsk { .. },
                ..
            }) => Some("for one call, add `--approve`".into()),
            Self::OpenFiles { .. } => Some("allow more, such as with `ulimit -n 1024`".into()),
            Self::Toolbox(ToolboxError::UnknownTool { nearest: Some(near), .. }) => {
                let end =
                    if near.disabled.is_none() { " `kitbag list` shows all tools" } else { "" };
                Some(format!("{near}{end}"))
            }
            Self::Toolbox(ToolboxError::UnknownTool { known, .. }) if !known.is_empty() => {
                Some(format!(
                    "the tools are {}; a component in `.kitbag/tools/` also becomes a tool",
                    alternatives(known)
                ))
            }
            Self::Toolbox(ToolboxError::Arguments { tool, .. }) => {
                let command = shell::command(["kitbag", "describe", tool]);
                Some(format!("`{command}` shows its arguments"))
            }
            Self::Toolbox(error) if error.kind() == ErrorKind::MissingFile => {
                Some("build the tool, or correct `wasm` in the configuration".into())
            }
            Self::Toolbox(ToolboxError::Call(CallError::Limit { kind, .. })) => match kind {
                LimitKind::Memory | LimitKind::Time | LimitKind::Written | LimitKind::Fuel => {
                    Some(allow_more(&kind.to_string(), &Origin::Default))
                }
                _ => None,
            },
            Self::Hinted { hint, .. } => Some(hint.clone()),
            _ => None,
        }
    }

    /// Adds the way to raise the limit that a call of this tool exceeded, which depends on who set
    /// it.
    pub(crate) fn of_call(self, tool: Option<&ConfiguredTool>) -> Self {
        let (Self::Toolbox(ToolboxError::Call(CallError::Limit { kind, .. })), Some(tool)) =
            (&self, tool)
        else {
            return self;
        };
        let limits = &tool.limits;
        let origin = match kind {
            LimitKind::Memory => &limits.memory.origin,
            LimitKind::Time => &limits.time.origin,
            LimitKind::Written => &limits.written.origin,
            LimitKind::Fuel => limits.fuel.as_ref().map_or(&Origin::Default, |fuel| &fuel.origin),
            _ => return self,
        };
        Self::Hinted { hint: allow_more(&kind.to_string(), origin), error: Box::new(self) }
    }

    /// Returns the complete report for standard error. Terminal control characters from tools are
    /// escaped.
    pub(crate) fn report(&self) -> String {
        if let Self::Configuration(errors) = self {
            let line = |diagnostic| format!("{}\n", labelled("error", &format!("{diagnostic}")));
            return errors.diagnostics().iter().map(line).collect();
        }
        let mut report = format!("{}\n", labelled("error", &self.to_string()));
        let mut cause = match self {
            Self::Hinted { error, .. } => error.source(),
            error => error.source(),
        };
        while let Some(error) = cause {
            let _ = writeln!(report, "{}", labelled("caused by", &error.to_string()));
            cause = error.source();
        }
        if let Some(hint) = self.hint() {
            let _ = writeln!(report, "{}", labelled("hint", &hint));
        }
        report
    }

    /// Returns the object that `--json` prints in place of output.
    pub(crate) fn json(&self) -> Value {
        if let Self::Hinted { error, .. } = self {
            return error.json();
        }
        if let Self::Question(question) = self {
            return json!({ "outcome": "needs-input", "question": question });
        }
        let mut object = json!({
            "outcome": "failed",
            "kind": exit::of_kind(self.kind()).1,
            "message": self.message(),
        });
        match self {
            Self::Toolbox(ToolboxError::Call(error)) => {
                object["transient"] = error.kind().is_transient().into();
                if let CallError::Limit { kind, limit } = error {
                    object["limit"] = kind.to_string().into();
                    object["value"] = limit.as_str().into();
                }
            }
            Self::Toolbox(ToolboxError::Rate { rate, retry_after, .. }) => {
                object["transient"] = true.into();
                object["rate"] = rate.to_string().into();
                let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
                object["retryAfterSeconds"] = seconds.into();
            }
            Self::Toolbox(ToolboxError::Arguments { problems, .. }) => {
                object["problems"] = json!(problems);
            }
            Self::Configuration(errors) => {
                let problems: Vec<_> =
                    errors.diagnostics().iter().map(ToString::to_string).collect();
                object["problems"] = json!(problems);
            }
            Self::Toolbox(ToolboxError::UnknownTool { nearest: Some(near), .. }) => {
                object["nearest"] = near.name.as_str().into();
            }
            _ => {}
        }
        object
    }

    fn message(&self) -> String {
        let mut message = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let _ = write!(message, ": {error}");
            cause = error.source();
        }
        message
    }
}

pub(crate) fn allow_more(key: &str, origin: &Origin) -> String {
    match origin {
        Origin::Environment { name } => {
            format!("allow more with the variable `{name}`, which sets it, or with `--{key}`")
        }
        Origin::Flag { name } => format!("allow more with `{name}`, which sets it"),
        Origin::Untrusted => format!(
            "allow more with `--{key}`; limits are lower until the workspace is trusted, see \
             `kitbag trust`"
        ),
        Origin::Trusted => format!(
            "allow more with `--{key}`, or run `kitbag trust`: the workspace requests a higher \
             limit than you trusted"
        ),
        Origin::File { .. } => format!("allow more with `--{key}`, or at {origin}, which sets it"),
        _ => format!("allow more with `--{key}`, or with `limits.{key}` of the tool"),
    }
}
