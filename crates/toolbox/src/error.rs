//! The errors between the name of a tool and its answer.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use kitbag_base::text::{nearest, shown, shown_path};
use kitbag_base::{ARGUMENTS_DEPTH, ByteSize};
use kitbag_config::{Disabled, GrantAdvice, HigherLimit, Origin, Sourced};
use kitbag_contract::{AnswerError, ApprovalRequest, ErrorKind, LimitKind};
use kitbag_host::{CallError, LoadError};
use kitbag_policy::Rate;
use kitbag_schema::{ArgumentProblem, CheckError, SchemaError};
use kitbag_state::audit::AuditError;
use kitbag_state::rates::CountsError;

/// A call that was not made, or that ended without an answer of the tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolboxError {
    /// No tool has that name.
    #[error("no tool is named `{}`", shown(name))]
    UnknownTool {
        /// The name as given.
        name: String,
        /// The tool that was most likely meant.
        nearest: Option<NearestTool>,
        /// The names of the known tools.
        known: Vec<String>,
    },
    /// The tool is disabled.
    #[error("the tool `{name}` is {reason}")]
    Disabled {
        /// The name of the tool.
        name: String,
        /// Why the tool is disabled, and how to enable it.
        reason: Box<Disabled>,
    },
    /// The component of a tool does not exist at the configured path.
    #[error(
        "the component `{}` does not exist ({origin}){}",
        shown_path(path),
        near.as_ref().map(|near| format!("; did you mean `{}`?", shown(near))).unwrap_or_default()
    )]
    MissingComponent {
        /// The path of the component.
        path: PathBuf,
        /// The origin of the path.
        origin: Origin,
        /// The name of the component in the same directory that was most likely meant.
        near: Option<String>,
    },
    /// The call was made by another process, which refused it or is gone.
    #[error("{message}")]
    Remote {
        /// The kind of the error.
        kind: ErrorKind,
        /// The reason.
        message: String,
    },
    /// A component's own description differs from the one that a person agreed to.
    #[error("kitbag does not run the tool `{tool}`: {reason}")]
    NotAsRecorded {
        /// The tool.
        tool: String,
        /// The difference, and how to display it.
        reason: String,
        /// The argument of `kitbag update`.
        update: String,
    },
    /// The component has no tool of the configured name, or cannot be called in the configured form.
    #[error("kitbag cannot call the tool `{tool}`: {reason}")]
    NotCallable {
        /// The tool.
        tool: String,
        /// The problem, and how to fix it.
        reason: String,
    },
    /// One of several tools cannot be loaded.
    #[error("the tool `{tool}` cannot be loaded")]
    Load {
        /// The tool.
        tool: String,
        /// Why the tool cannot be loaded.
        #[source]
        source: Box<LoadError>,
    },
    /// The arguments do not fit the tool's schema.
    #[error("invalid arguments for `{tool}`{}", list(problems))]
    Arguments {
        /// The tool.
        tool: String,
        /// All problems with the arguments.
        problems: Vec<ArgumentProblem>,
    },
    /// An argument of a tool that changes something contains a mask.
    #[error(
        "`{}` of `{tool}` contains `{}`, a mask that kitbag put in place of a value; writing it \
         back would replace the value. Leave that line unchanged and edit others, or copy and edit \
         the file within one call, such as of `python`, which sees the value",
        shown(pointer),
        shown(mask)
    )]
    Masked {
        /// The tool.
        tool: String,
        /// The argument, as a JSON pointer.
        pointer: String,
        /// The mask.
        mask: String,
    },
    /// The tool's content does not fit the output schema that it declares.
    #[error("the answer of `{tool}` does not fit its output schema{}", list(problems))]
    Output {
        /// The tool.
        tool: String,
        /// All problems with the content.
        problems: Vec<ArgumentProblem>,
    },
    /// The tool's content must fit an output schema, but was truncated.
    #[error(
        "the output of `{tool}` was truncated, so it is no longer valid JSON: {cut}; request \
             less, or raise the limit"
    )]
    Cut {
        /// The tool.
        tool: String,
        /// The truncation.
        cut: Truncation,
    },
    /// The tool's schema is not a JSON Schema, or is too expensive to check against.
    #[error("the {kind} schema of `{tool}` cannot be used: {reason}")]
    Schema {
        /// The tool.
        tool: String,
        /// `input` or `output`.
        kind: &'static str,
        /// The problem with the schema.
        reason: String,
    },
    /// An answer does not fit the question.
    #[error("the answer to `{}` ({origin}) does not fit", shown(question))]
    Answer {
        /// The question's id.
        question: String,
        /// The origin of the answer.
        origin: Origin,
        /// Why the answer does not fit.
        #[source]
        source: AnswerError,
    },
    /// The person did not answer, so the call ended.
    #[error(
        "the user {} `{}` ({text}); nothing was done",
        if *is_dismissed { "dismissed" } else { "declined to answer" }, shown(question)
    )]
    Declined {
        /// The question's id.
        question: String,
        /// The question as shown to the person. Untrusted text.
        text: String,
        /// True if the person closed the question instead of declining it.
        is_dismissed: bool,
    },
    /// The call needs the approval of a person, and has none.
    #[error("the call of `{tool}` {why}")]
    NotApproved {
        /// The tool.
        tool: String,
        /// Why the call is not approved.
        why: NotApproved,
    },
    /// The tool asks a question with an id that is reserved for the host.
    #[error(
        "the tool asks `{}`; ids that start with `{}` are reserved for kitbag's own questions",
        shown(question),
        ApprovalRequest::ID_PREFIX
    )]
    ReservedQuestion {
        /// The question's id.
        question: String,
    },
    /// The tool asks a question that could mislead a person.
    #[error("the tool may not ask the question `{}`: {reason}", shown(question))]
    QuestionFlaw {
        /// The question's id.
        question: String,
        /// Why the question is refused.
        reason: &'static str,
    },
    /// The system provides no random bytes.
    #[error("the system provides no random bytes: {0}")]
    Random(String),
    /// Calls are nested too deeply.
    #[error("nested calls are limited to {limit} levels (called from {caller})")]
    TooDeep {
        /// The caller of the refused call.
        caller: String,
        /// The maximum depth of nested calls.
        limit: u32,
    },
    /// The caller calls the tool more often than its rate allows.
    #[error(
        "the rate of `{tool}`, `{rate}` ({origin}){}, is used up; try again in {} s",
        counted_as.as_ref().map(|name| format!(", counted as `{name}`")).unwrap_or_default(),
        seconds(*retry_after)
    )]
    Rate {
        /// The tool.
        tool: String,
        /// The other name of the tool that the user config limits, if calls of the tool use up the
        /// rate of that name.
        counted_as: Option<String>,
        /// The rate.
        rate: Rate,
        /// The origin of the rate.
        origin: Origin,
        /// The time until a call is allowed again.
        retry_after: Duration,
    },
    /// A tool calls another tool more often than its grant allows.
    #[error(
        "the rate of `{alias}`, `{rate}` (the grant `tools` of the calling tool), is used up; try \
         again in {} s",
        seconds(*retry_after)
    )]
    AliasRate {
        /// The calling tool and its alias for the called tool, separated by `/`.
        alias: String,
        /// The rate.
        rate: Rate,
        /// The time until a call is allowed again.
        retry_after: Duration,
    },
    /// The counts of calls cannot be stored, so rates cannot be enforced.
    #[error(transparent)]
    Counts(#[from] CountsError),
    /// The call cannot be written to the audit log, which the settings require.
    #[error(
        "the call is refused, because `[audit] required` is set and the call cannot be logged: {0}"
    )]
    Audit(#[source] AuditError),
    /// A tool of the embedding program cannot be registered.
    #[error("the tool `{}` cannot be registered: {reason}", shown(tool))]
    Register {
        /// The name that the tool declares.
        tool: String,
        /// Why the tool cannot be registered.
        reason: String,
    },
    /// The state with which a call is to be resumed does not belong to the call.
    #[error("{0}")]
    State(String),
    /// The tool asks a question that was already answered.
    #[error("the tool asks `{}` again although it was answered", shown(question))]
    AskedAgain {
        /// The question's id.
        question: String,
    },
    /// The tool asks too many questions.
    #[error("the tool asked more than {limit} questions")]
    TooManyQuestions {
        /// The maximum number of questions.
        limit: usize,
    },
    /// The tool was run again with an answer and makes different calls than in its previous run.
    #[error(
        "the tool ran again with an answer, but its nested call {number} was `{}` with other \
         arguments, or instead of `{}`; a tool that calls other tools must make the same calls in \
         each run",
        shown(now),
        shown(before)
    )]
    Diverged {
        /// The number of the call, from 1.
        number: usize,
        /// The call in the previous run.
        before: String,
        /// The call in this run.
        now: String,
    },
    /// An inner call asks a question, but the answers of the other inner calls are too large to
    /// keep.
    #[error(
        "the tool cannot ask a question: the answers of its nested calls, which must be kept until \
         it runs again, exceed {} MiB",
        limit >> 20
    )]
    TooMuchToKeep {
        /// The maximum size of the answers, in bytes.
        limit: usize,
    },
    /// The grant by which a tool calls another does not allow these arguments.
    #[error(
        "`{caller}` may not make this call of `{}`: {reason}{}",
        shown(alias),
        advice.as_ref().map(|it| format!("; to allow it, {it}")).unwrap_or_default()
    )]
    NotGranted {
        /// The calling tool.
        caller: String,
        /// The caller's alias for the called tool.
        alias: String,
        /// The part of the call that the grant does not allow.
        reason: String,
        /// The grant that would allow the call. `None` if no grant would.
        advice: Option<Box<GrantAdvice>>,
    },
    /// The tool is granted a secret that does not exist.
    #[error(
        "`{tool}` is granted the secret `{secret}`, which does not exist; set it with `{command}`"
    )]
    NoSecret {
        /// The tool.
        tool: String,
        /// The name of the secret.
        secret: String,
        /// The command that sets the secret.
        command: String,
    },
    /// A call requests more grants than its tool has.
    #[error(
        "a call of `{tool}` cannot be granted `{}`: {reason}; request less, or grant the tool more",
        shown(grant)
    )]
    MoreGranted {
        /// The tool.
        tool: String,
        /// The grant that exceeds the tool's grants.
        grant: String,
        /// Why the grant exceeds them.
        reason: String,
    },
    /// A call requests a higher limit than its tool has.
    #[error(
        "a call of `{tool}` cannot have `{} = {}`: the tool has `{}` ({}); request less, or raise \
         the limit of the tool",
        limit.key,
        limit.wanted,
        limit.own.value,
        limit.own.origin
    )]
    HigherLimit {
        /// The tool.
        tool: String,
        /// The limit.
        limit: Box<HigherLimit>,
    },
    /// The call itself failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Why a call is not approved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotApproved {
    /// The person declined.
    #[error("was not approved: the user declined; nothing was done")]
    Declined,
    /// The tool asked a question of a denied class.
    #[error("was not approved: `{class}` is denied ({origin}); the tool did not continue")]
    Class {
        /// The class of the question.
        class: String,
        /// The origin of the rule that denies the class.
        origin: Origin,
    },
    /// There was no person to ask.
    #[error(
        "needs the approval of a person, but no person can be asked; nothing was done. To allow it \
         without a question, {advice}"
    )]
    NobodyToAsk {
        /// How to allow the call.
        advice: String,
    },
}

/// The truncation of an answer that was longer than the output limit.
///
/// Displayed as ``it had 3000000 bytes; the limit `output` is 1 MiB (default)``.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it had {bytes} bytes; the limit `output` is {} ({})", limit.value, limit.origin)]
pub struct Truncation {
    /// The size of the whole answer, in bytes.
    pub bytes: u64,
    /// The limit and its origin.
    pub limit: Sourced<ByteSize>,
}

/// The tool that was most likely meant by a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestTool {
    /// The name of the tool.
    pub name: String,
    /// Why the tool is disabled, and how to enable it.
    pub disabled: Option<Box<Disabled>>,
}

impl fmt::Display for NearestTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "did you mean `{}`?", self.name)?;
        match &self.disabled {
            None => Ok(()),
            Some(reason) => write!(f, " It is {reason}"),
        }
    }
}

impl ToolboxError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownTool { .. } => ErrorKind::UnknownTool,
            Self::Disabled { reason, .. } if reason.is_trust() => ErrorKind::Untrusted,
            Self::Disabled { reason, .. } => match **reason {
                Disabled::Broken { .. } | Disabled::Unrestricted { .. } => ErrorKind::Broken,
                _ => ErrorKind::Disabled,
            },
            Self::MissingComponent { .. } => ErrorKind::MissingFile,
            Self::NotAsRecorded { .. } => ErrorKind::Changed,
            Self::NotCallable { .. } => ErrorKind::Configuration,
            Self::Load { source, .. } => source.kind(),
            Self::Arguments { .. } | Self::Masked { .. } => ErrorKind::Arguments,
            Self::Output { .. }
            | Self::Schema { .. }
            | Self::AskedAgain { .. }
            | Self::ReservedQuestion { .. }
            | Self::QuestionFlaw { .. }
            | Self::Diverged { .. }
            | Self::TooManyQuestions { .. } => ErrorKind::Contract,
            Self::Cut { .. } | Self::TooMuchToKeep { .. } => ErrorKind::Size,
            Self::Answer { origin: Origin::File { .. }, .. } => ErrorKind::PresetAnswer,
            Self::Answer { .. } => ErrorKind::Answer,
            Self::Declined { .. } => ErrorKind::Declined,
            Self::NotApproved { .. } => ErrorKind::Approval,
            Self::Random(_) | Self::Register { .. } => ErrorKind::System,
            Self::TooDeep { .. } => ErrorKind::Depth,
            Self::Rate { .. } | Self::AliasRate { .. } => ErrorKind::Rate,
            Self::Counts(_) => ErrorKind::Counts,
            Self::Remote { kind, .. } => *kind,
            Self::Audit(_) => ErrorKind::Audit,
            Self::State(_) => ErrorKind::State,
            Self::NotGranted { .. } => ErrorKind::Grant,
            Self::NoSecret { .. } => ErrorKind::Secret,
            Self::MoreGranted { .. } => ErrorKind::ExcessGrant,
            Self::HigherLimit { .. } => ErrorKind::ExcessLimit,
            Self::Call(error) => error.kind(),
        }
    }

    pub(crate) fn unknown_tool<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<_> = known.map(str::to_owned).collect();
        let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        let nearest = near.map(|name| NearestTool { name, disabled: None });
        Self::UnknownTool { name: name.to_owned(), nearest, known }
    }

    /// Creates the error for a missing component. Looks in the same directory for the component
    /// that was most likely meant.
    pub(crate) fn missing_component(path: PathBuf, origin: Origin) -> Self {
        const ENTRIES: usize = 1_000;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let entries = path.parent().and_then(|directory| directory.read_dir().ok());
        let names = entries.into_iter().flatten().take(ENTRIES).flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let names: Vec<_> = names.filter(|name| name.ends_with(".wasm")).collect();
        let near = nearest(&name, names.iter().map(String::as_str)).map(str::to_owned);
        Self::MissingComponent { path, origin, near }
    }

    pub(crate) fn arguments(tool: &str, error: CheckError<CallError>) -> Self {
        match error {
            CheckError::Misfit(problems) => Self::Arguments { tool: tool.to_owned(), problems },
            CheckError::TooDeep => {
                let limit = format!("{ARGUMENTS_DEPTH} levels");
                Self::Call(CallError::Limit { kind: LimitKind::Arguments, limit })
            }
            CheckError::Schema(error) => Self::schema(tool, "input", error),
            CheckError::Ended(error) => Self::Call(error),
        }
    }

    /// Creates the error for a schema of this tool. `kind` is `input` or `output`.
    pub(crate) fn schema(tool: &str, kind: &'static str, error: SchemaError) -> Self {
        Self::Schema { tool: tool.to_owned(), kind, reason: error.reason }
    }
}

impl From<LoadError> for ToolboxError {
    fn from(error: LoadError) -> Self {
        Self::Call(match error {
            LoadError::Cancelled => CallError::Cancelled,
            error => CallError::Load(error),
        })
    }
}

/// Returns whole seconds, rounded up, so that the time has passed after them.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn list(problems: &[ArgumentProblem]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}
