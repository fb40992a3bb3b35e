//! Tools that the embedding program implements itself, and their inner calls.

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
/// It has the program's own rights. Its arguments are checked, and its time and the size of its
/// answer are limited, as for any tool.
pub trait NativeTool: Send + Sync {
    /// Returns the tool's own description: its name, the schema of its arguments, and hints. Called
    /// once, when the tool is registered. Requested grants are ignored.
    fn description(&self) -> ToolDescription;

    /// Runs the tool. The future is polled on a thread that is reserved for calls, and is dropped
    /// when the call must end. It must therefore yield regularly.
    ///
    /// If the outcome is a question, the tool is called again from the start with the existing
    /// answers ([`NativeCall::answers`]).
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
    /// Calls a tool with the permit of the outer call.
    fn call(&self, invocation: Invocation, context: CallContext) -> InnerOutcome<'_>;
}

/// The future outcome of an inner call of a native tool.
pub(crate) type InnerOutcome<'a> =
    Pin<Box<dyn Future<Output = Result<Outcome, ToolboxError>> + 'a>>;

/// One run of a native tool.
pub struct NativeCall<'a> {
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) answers: &'a Map<String, Value>,
    pub(crate) tool: &'a ToolName,
    pub(crate) tools: &'a dyn CallTools,
    pub(crate) context: &'a CallContext,
    /// Allows one inner call at a time, so that a permit covers at most one guest at each depth.
    pub(crate) turn: Semaphore,
}

impl NativeCall<'_> {
    /// Returns the arguments, which fit the tool's input schema.
    pub fn arguments(&self) -> &Map<String, Value> {
        self.arguments
    }

    /// Returns the existing answers, by the question's id.
    pub fn answers(&self) -> &Map<String, Value> {
        self.answers
    }

    /// Returns the caller of the tool.
    pub fn caller(&self) -> &Caller {
        &self.context.caller
    }

    /// Reports a log message of the call.
    pub fn log(&self, level: LogLevel, message: &str) {
        self.context.run.events.log(level, message);
    }

    /// Reports the progress of the call.
    pub fn progress(&self, progress: Progress) {
        self.context.run.events.progress(progress);
    }

    /// Calls another tool, with the rights and limits of that tool. The inner call runs with the
    /// permit of this call and ends with it: when this call is cancelled, and when its time is up.
    /// Inner calls of one call run one after the other.
    ///
    /// The outcome is a question if the configuration does not answer it. A call that needs a
    /// person's approval is refused unless all such calls are approved, because no person is asked
    /// inside native code.
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
