//! Calls that another process makes: the parts that a front end sends and receives, and the entry
//! point of the worker.
//!
//! The front end resolves the tool, checks the arguments, settles the approval and prepares the
//! answer for its reader. The worker resolves and checks again and runs the tool, with its own
//! configuration, grants, limits and secrets.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_base::json::{self as strict, Digits, JsonBudget};
use kitbag_config::LimitFlags;
use kitbag_contract::{Content, ErrorKind, Outcome, Question, ToolName};
use kitbag_host::{CallError, Completion, RunContext, Usage};
use kitbag_policy::DirectoryGrant;
use kitbag_schema::Arguments;
use serde_json::{Map, Value};

use crate::call::caller::Caller;
use crate::call::context::{CallContext, NoAnswers};
use crate::call::invocation::{Invocation, Resumed};
use crate::call::json;
use crate::call::outcome::{CallOutcome, PreparedCall};
use crate::error::ToolboxError;
use crate::registry::{Toolbox, ToolboxState};
use crate::screening::random;

/// Makes calls in another process.
pub trait RemoteRunner: Send + Sync {
    /// Makes a call, which needs these directories, and returns its end. Sends events to the
    /// context, and ends the call when the context is cancelled or the future is dropped.
    fn run(
        &self,
        call: RemoteCall,
        directories: &[DirectoryGrant],
        context: RunContext,
    ) -> RemoteFuture<'_, RemoteEnd>;
}

/// A future of a [`RemoteRunner`] or a [`Journal`].
pub type RemoteFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolboxError>> + Send + 'a>>;

/// Records that a call may have an effect before it has one.
pub trait Journal: Send + Sync {
    /// Records that a call of this tool can change or send something from now on.
    ///
    /// # Errors
    ///
    /// The call must not continue: another process may make it.
    fn before_effects(&self, tool: &ToolName, is_idempotent: bool) -> RemoteFuture<'_, ()>;
}

/// One run of a call, as a front end sends it to a worker.
#[derive(Clone, Debug)]
pub struct RemoteCall {
    /// The random id of the call.
    pub id: String,
    /// The number of earlier runs, which ended with questions.
    pub round: u32,
    /// The name of the tool.
    pub tool: ToolName,
    /// The arguments: a JSON object that was checked.
    pub arguments: String,
    /// The answers to the questions of earlier runs.
    pub answers: Map<String, Value>,
    /// The caller.
    pub caller: Caller,
    /// The owner of stored data.
    pub owner: Caller,
    /// The time limit of the tool.
    pub time: Duration,
    /// The limits that the caller lowered.
    pub limits: LimitFlags,
}

/// The end of one run of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteEnd {
    /// The tool ended, or the worker's host ended it.
    Completed(Box<RemoteCompletion>),
    /// The tool asks a question. The next run receives these answers and the new one.
    Asks {
        /// The question.
        question: Box<Question>,
        /// The answers of this run.
        answers: Map<String, Value>,
    },
    /// The call was not made.
    Refused {
        /// The kind of the error.
        kind: ErrorKind,
        /// The reason.
        message: String,
    },
}

/// The result of a tool on a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteCompletion {
    /// The content, the tool's error or the host's error.
    pub result: Result<Outcome, RemoteFailure>,
    /// The content that the tool emitted besides its text. Untrusted.
    pub emitted: Vec<Content>,
    /// The beginning of the tool's standard output. Untrusted.
    pub stdout: String,
    /// The beginning of the tool's standard error. Untrusted.
    pub stderr: String,
    /// The resources that the call used.
    pub usage: RemoteUsage,
    /// Advice for a person on the accesses that were refused.
    pub advice: Vec<String>,
}

/// Why a worker's host ended a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteFailure {
    /// The call reached a limit.
    Limit(kitbag_contract::LimitKind, String),
    /// A grant cannot be given.
    Denied(String),
    /// The tool trapped.
    Trap(String),
    /// The call was cancelled.
    Cancelled,
}

/// The resources that a call used on a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteUsage {
    /// Time from the start of the run to its end.
    pub elapsed: Duration,
    /// Linear memory at the end, in bytes.
    pub memory: u64,
    /// Size of the answer before truncation, in bytes.
    pub output_bytes: u64,
    /// Size of the emitted content, in bytes.
    pub emitted_bytes: u64,
    /// Number of instructions, if they are counted.
    pub fuel: Option<u64>,
}

/// The part of a prepared call that is sent to a worker.
pub(crate) struct RemoteState {
    id: String,
    round: u32,
    arguments: String,
    limits: LimitFlags,
    pub(crate) advice: Vec<String>,
}

impl RemoteState {
    pub(crate) fn new(
        arguments: &Map<String, Value>,
        digits: &Digits,
        limits: LimitFlags,
    ) -> Result<Self, ToolboxError> {
        let arguments = json::exact_text(arguments.clone(), digits);
        Ok(Self { id: random::number()?, round: 0, arguments, limits, advice: Vec::new() })
    }
}

/// Has a worker make one run of a call.
pub(crate) async fn run(
    state: &ToolboxState,
    call: &mut PreparedCall,
    context: &CallContext,
) -> Result<Completion, ToolboxError> {
    let (Some(runner), Some(remote)) = (&state.remote, &mut call.remote) else {
        return Err(CallError::Internal("the call has no worker".into()).into());
    };
    let request = RemoteCall {
        id: remote.id.clone(),
        round: remote.round,
        tool: call.tool.name.clone(),
        arguments: remote.arguments.clone(),
        answers: call.answers.clone(),
        caller: context.caller.clone(),
        owner: context.owner.clone().unwrap_or_else(|| context.caller.clone()),
        time: call.time,
        limits: remote.limits,
    };
    let directories = &call.call.grants.directories;
    match runner.run(request, directories, context.run.clone()).await? {
        RemoteEnd::Completed(mut completed) => {
            remote.advice = mem::take(&mut completed.advice);
            Ok(completed.into_completion())
        }
        RemoteEnd::Asks { question, answers } => {
            remote.round += 1;
            call.answers = answers;
            Ok(Completion::answered(Outcome::NeedsInput(*question)))
        }
        RemoteEnd::Refused { kind, message } => Err(ToolboxError::Remote { kind, message }),
    }
}

impl RemoteCompletion {
    fn into_completion(self) -> Completion {
        let result = self.result.map_err(|failure| match failure {
            RemoteFailure::Limit(kind, limit) => CallError::Limit { kind, limit },
            RemoteFailure::Denied(reason) => CallError::Denied(reason),
            RemoteFailure::Trap(message) => CallError::Trap { message },
            RemoteFailure::Cancelled => CallError::Cancelled,
        });
        let RemoteUsage { elapsed, memory, output_bytes, emitted_bytes, fuel } = self.usage;
        let mut completion = Completion::answered(Outcome::Success(String::new()));
        completion.result = result;
        completion.emitted = self.emitted;
        completion.stdout.text = self.stdout;
        completion.stderr.text = self.stderr;
        let memory = ByteSize::bytes(memory);
        completion.usage = Usage { elapsed, memory, output_bytes, emitted_bytes, fuel };
        completion
    }

    /// Returns the completion for a front end.
    ///
    /// # Errors
    ///
    /// The error of a call that was not made.
    fn new(completion: Completion, advice: Vec<String>) -> Result<Self, CallError> {
        let result = match completion.result {
            Ok(outcome) => Ok(outcome),
            Err(CallError::Limit { kind, limit }) => Err(RemoteFailure::Limit(kind, limit)),
            Err(CallError::Denied(reason)) => Err(RemoteFailure::Denied(reason)),
            Err(CallError::Trap { message }) => Err(RemoteFailure::Trap(message)),
            Err(CallError::Cancelled) => Err(RemoteFailure::Cancelled),
            Err(error) => return Err(error),
        };
        let Usage { elapsed, memory, output_bytes, emitted_bytes, fuel } = completion.usage;
        let memory = memory.as_u64();
        let usage = RemoteUsage { elapsed, memory, output_bytes, emitted_bytes, fuel };
        let (stdout, stderr) = (completion.stdout.text, completion.stderr.text);
        Ok(Self { result, emitted: completion.emitted, stdout, stderr, usage, advice })
    }
}

impl Toolbox {
    /// Returns this toolbox with a runner that makes the calls of its tools. Native tools are still
    /// called here.
    #[must_use]
    pub fn with_remote(&self, runner: Arc<dyn RemoteRunner>) -> Self {
        let (config, program) = self.parts();
        self.with_parts_and(config, program, self.0.servers.clone(), Some(runner))
    }

    /// Makes one run of a call for a front end. The arguments are checked again, and grants and
    /// limits are those of this toolbox. The front end has settled the approval of the call; calls
    /// that the tool makes are approved here.
    pub async fn run_remote(
        &self,
        call: RemoteCall,
        run: RunContext,
        journal: Arc<dyn Journal>,
    ) -> RemoteEnd {
        let end = self.try_run_remote(call, run, journal).await;
        end.unwrap_or_else(|error| RemoteEnd::Refused {
            kind: error.kind(),
            message: error.to_string(),
        })
    }

    async fn try_run_remote(
        &self,
        call: RemoteCall,
        run: RunContext,
        journal: Arc<dyn Journal>,
    ) -> Result<RemoteEnd, ToolboxError> {
        let mut context = CallContext::new(call.caller).with_owner(call.owner);
        context.run = run;
        context.approver = None;
        context.journal = Some(journal);
        let read = strict::parse_exact(call.arguments.as_bytes(), JsonBudget::ARGUMENTS);
        let (value, digits) = read.map_err(|error| ToolboxError::Remote {
            kind: ErrorKind::Arguments,
            message: error.to_string(),
        })?;
        let answers = call.answers;
        let resumed = move |_: &str, _: &str| Ok(Resumed { answers, inner: None });
        let mut invocation = Invocation::tool(call.tool, Arguments::exact(value, digits))
            .with_limits(call.limits)
            .resume(Box::new(resumed));
        invocation.is_for_front_end = true;
        match self.call(invocation, context, &mut NoAnswers).await? {
            CallOutcome::Completed(completed) => {
                let completion = RemoteCompletion::new(completed.completion, completed.advice)?;
                Ok(RemoteEnd::Completed(Box::new(completion)))
            }
            CallOutcome::Suspended(mut suspended) => match suspended.take_inner() {
                None => {
                    let answers = suspended.answers();
                    Ok(RemoteEnd::Asks { question: Box::new(suspended.question), answers })
                }
                // A new run would make these calls again.
                Some(_) => Err(ToolboxError::Remote {
                    kind: ErrorKind::Unanswered,
                    message: format!(
                        "a worker cannot ask a question after the tool has called other tools: {}",
                        suspended.question.text.trim_end()
                    ),
                }),
            },
            CallOutcome::Refused(never) => match never {},
        }
    }
}
