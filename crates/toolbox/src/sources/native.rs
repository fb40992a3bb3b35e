//! Tools that the embedding program implements itself, and the calls that they make.

use std::pin::Pin;
use std::sync::Arc;

pub use kitbag_host::CALL_DEPTH;

use kitbag_contract::{LogLevel, Outcome, Progress, ToolDescription, ToolName};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::call::caller::Caller;
use crate::call::context::CallContext;
use crate::call::invocation::Invocation;
use crate::error::ToolboxError;

/// A tool that is code of the embedding program.
///
/// It has the program's own rights. Its arguments are checked, its time and the size of
/// its answer are limited as those of any tool.
pub trait NativeTool: Send + Sync {
    /// What it says of itself: its name, the schema of its arguments, hints. Asked once,
    /// when it is registered; wishes for grants count for nothing.
    fn description(&self) -> ToolDescription;

    /// Does the work. The future is polled on a thread kept for calls and dropped when
    /// the call has to end, for which it has to yield now and then.
    ///
    /// A question as its outcome has it called again, from the start, with the answers
    /// so far ([`NativeCall::answers`]).
    fn call<'a>(&'a self, call: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;
}

#[derive(Clone)]
pub(crate) struct Native {
    tool: Arc<dyn NativeTool>,
    description: ToolDescription,
}

impl Native {
    pub(crate) fn new(tool: Arc<dyn NativeTool>) -> Self {
        let description = tool.description();
        Self { tool, description }
    }

    pub(crate) fn tool(&self) -> Arc<dyn NativeTool> {
        Arc::clone(&self.tool)
    }

    pub(crate) fn description(&self) -> ToolDescription {
        self.description.clone()
    }
}

pub(crate) trait CallTools: Send + Sync {
    /// Calls a tool with the permit of the call that this one is inside of.
    fn call(&self, invocation: Invocation, context: CallContext) -> InnerOutcome<'_>;
}

/// The outcome of a call that a native tool makes, once there is one.
pub(crate) type InnerOutcome<'a> =
    Pin<Box<dyn Future<Output = Result<Outcome, ToolboxError>> + 'a>>;

/// One run of a native tool.
pub struct NativeCall<'a> {
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) answers: &'a Map<String, Value>,
    pub(crate) tool: &'a ToolName,
    pub(crate) tools: &'a dyn CallTools,
    pub(crate) context: &'a CallContext,
    /// One inner call at a time, so that a permit stands for at most one guest at each
    /// depth.
    pub(crate) turn: Semaphore,
}

impl NativeCall<'_> {
    /// The arguments, which fit the tool's input schema.
    pub fn arguments(&self) -> &Map<String, Value> {
        self.arguments
    }

    /// The answers so far, by the question's id.
    pub fn answers(&self) -> &Map<String, Value> {
        self.answers
    }

    /// Who called the tool.
    pub fn caller(&self) -> &Caller {
        &self.context.caller
    }

    /// Reports a log message of the call.
    pub fn log(&self, level: LogLevel, message: &str) {
        self.context.run.events.log(level, message);
    }

    /// Reports how far the call is.
    pub fn progress(&self, progress: Progress) {
        self.context.run.events.progress(progress);
    }

    /// Calls another tool, with the rights and limits of that tool. It runs with the
    /// permit of this call and ends with it: when it is cancelled, and when its time is
    /// over. Inner calls of one call run one after the other.
    ///
    /// A question that the configuration does not answer is its outcome. A call that needs a
    /// person's approval, and has none for all such calls, is refused: nobody is asked inside
    /// of native code.
    ///
    /// # Errors
    ///
    /// As for [`Toolbox::call`](crate::Toolbox::call), and [`ToolboxError::TooDeep`].
    pub async fn call(&self, invocation: Invocation) -> Result<Outcome, ToolboxError> {
        let turn = self.turn.acquire().await;
        let mut context = self.context.clone();
        context.caller = Caller::Tool(self.tool.clone());
        context.depth += 1;
        context.run.events = kitbag_host::EventSink::default();
        let outcome = self.tools.call(invocation, context).await?;
        drop(turn);
        Ok(outcome)
    }
}
