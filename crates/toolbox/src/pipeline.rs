//! One call, for every front end: resolve, check, authorise, run, record.
//!
//! [`Toolbox::drive`] is the only driver. It takes an invocation through the steps and passes
//! questions to the front end, until the call has ended or is suspended. The edge decides on which
//! thread each part runs.

mod ask;
pub(crate) mod edge;
mod effects;
pub(crate) mod host_paths;
mod narrow;
mod native;
pub(crate) mod nested_calls;
mod prepare;
mod record;
mod run;
mod server;
pub(crate) mod temporary;

pub(crate) use prepare::check_arguments;

use std::sync::Arc;

use kitbag_contract::{Action, Outcome};
use kitbag_host::CALL_DEPTH;

use self::ask::{AskResult, ask};
use self::prepare::prepare;
use self::record::{End, Recording};
use self::run::{Stretch, run, run_away};
use crate::audit::{self, Audited};
use crate::call::context::{CallContext, FrontEnd};
use crate::call::invocation::{Invocation, InvocationKind};
use crate::call::outcome::{CallOutcome, Completed, Fencing, PreparedCall, Suspended};
use crate::error::ToolboxError;
use crate::pipeline::edge::Edge;
use crate::registry::Toolbox;
use crate::registry::tool::Tool;
use crate::screening::annotations;
use crate::screening::masking::{self, Masking};

impl Toolbox {
    /// Makes a call. This is the only driver, and contains the only loop that has questions
    /// answered. Inner calls also use it.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if the call was not made. Any other end of the tool is in the completion.
    pub(crate) async fn drive<E: Edge, F: FrontEnd>(
        &self,
        edge: &E,
        invocation: Invocation,
        mut context: CallContext,
        front_end: &mut F,
    ) -> Result<CallOutcome<F::Abort>, ToolboxError> {
        context.settle_owner();
        if context.depth >= CALL_DEPTH {
            if let Some(outer) = &context.audited {
                outer.refused_call(invocation.target.tool(), "depth");
            }
            let caller = context.caller.to_string();
            return Err(ToolboxError::TooDeep { caller, limit: CALL_DEPTH });
        }
        context.charge_to(invocation.target.tool());
        self.mask_events(invocation.target.tool(), &mut context);
        context.audited = match invocation.action {
            Action::Run => {
                let serves = invocation.serves();
                Audited::begin(self.auditor(), context.audited.as_deref(), serves)
            }
            // Rendering a call uses no grants.
            Action::FormatArguments => None,
        };
        let (tool, kind) = (invocation.target.tool(), invocation.kind());
        let recording = Recording::begin(self, tool, kind, &context);
        audit::check(self.auditor(), &self.config().audit).map_err(ToolboxError::Audit)?;
        let step = Step::Begin(Box::new(invocation));
        drive_from(edge, self, step, &context, recording, front_end).await
    }

    /// Continues a suspended call whose question was answered.
    ///
    /// # Errors
    ///
    /// As for [`drive`](Self::drive).
    pub(crate) async fn resume<E: Edge, F: FrontEnd>(
        &self,
        edge: &E,
        suspended: Box<Suspended>,
        mut context: CallContext,
        front_end: &mut F,
    ) -> Result<CallOutcome<F::Abort>, ToolboxError> {
        context.settle_owner();
        context.charge_to(suspended.call.tool.name.as_str());
        self.mask_events(suspended.call.tool.name.as_str(), &mut context);
        // Only calls of tools can be inner calls.
        context.audited = Audited::begin(self.auditor(), context.audited.as_deref(), None);
        let tool = suspended.call.tool.name.as_str();
        let recording = Recording::begin(self, tool, InvocationKind::Tool, &context);
        audit::check(self.auditor(), &self.config().audit).map_err(ToolboxError::Audit)?;
        let step = Step::Resume(suspended.call);
        drive_from(edge, self, step, &context, recording, front_end).await
    }
}

impl Toolbox {
    /// Masks the events of a tool call, unless it is an inner call.
    fn mask_events(&self, tool: &str, context: &mut CallContext) {
        let is_off = self.config().tools.get(tool).is_some_and(|tool| !tool.mask.value);
        if context.depth == 0 && !is_off {
            let events = std::mem::take(&mut context.run.events);
            context.run.events = masking::events(events, &self.0.secrets);
        }
    }
}

/// Makes a call from this step onwards.
async fn drive_from<E: Edge, F: FrontEnd>(
    edge: &E,
    toolbox: &Toolbox,
    mut step: Step,
    context: &CallContext,
    mut recording: Recording<'_>,
    front_end: &mut F,
) -> Result<CallOutcome<F::Abort>, ToolboxError> {
    let ended = loop {
        let (worker, accompanying) = (toolbox.clone(), context.clone());
        let work = move || advance(worker, step, accompanying);
        let ready = front_end.ready();
        let (account, cancellation) = (&context.run.account, &context.run.cancellation);
        let stretch = edge.perform(toolbox.host(), account, cancellation, ready, work).await;
        let mut stretch = stretch.map_err(ToolboxError::from).flatten();
        if let Ok(Stretch::Away(call)) = stretch {
            let (tool, fencing) = (Arc::clone(&call.tool), call.fencing);
            let away = Box::pin(run_away(toolbox, call, context)).await;
            stretch = away.map_err(|error| marked(toolbox, &tool, fencing, error));
        }
        let mut asks = match stretch {
            Ok(Stretch::Away(_)) => unreachable!("`run_away` returns the call"),
            Ok(Stretch::Ended(completed)) => break Ok(CallOutcome::Completed(completed)),
            Ok(Stretch::Asks(asks)) => asks,
            Err(error) => break Err(error),
        };
        // The boxed future takes no space in a call that asks no questions.
        match Box::pin(ask(front_end, &asks.question)).await {
            Ok(AskResult::Answered(answer)) => {
                asks.call.answers.insert(asks.question.id, answer);
                step = Step::Resume(asks.call);
            }
            Ok(AskResult::Unanswered(mut rejected)) => {
                if let Some(error) = rejected.as_mut().filter(|_| context.depth == 0) {
                    Masking::new(&toolbox.0.secrets).answer_error(error);
                }
                asks.rejected = rejected;
                break Ok(CallOutcome::Suspended(asks));
            }
            Ok(AskResult::Refused(refusal)) => break Ok(CallOutcome::Refused(refusal)),
            Err(error) => break Err(marked(toolbox, &asks.call.tool, asks.call.fencing, error)),
        }
    };
    let mut ended = ended;
    if context.depth == 0
        && let Err(error) = &mut ended
    {
        Masking::new(&toolbox.0.secrets).error(error);
    }
    recording.end = End::of(&ended);
    ended
}

/// Returns an error in the form for a model, if a model reads it.
fn marked(
    toolbox: &Toolbox,
    tool: &Tool,
    fencing: Option<Fencing>,
    error: ToolboxError,
) -> ToolboxError {
    match fencing {
        Some(_) => annotations::marked_error(&toolbox.0, tool, error),
        None => error,
    }
}

enum Step {
    Begin(Box<Invocation>),
    Resume(Box<PreparedCall>),
}

/// Advances a call until it ends or needs an answer of the front end.
async fn advance(
    toolbox: Toolbox,
    step: Step,
    context: CallContext,
) -> Result<Stretch, ToolboxError> {
    let call = match step {
        Step::Begin(invocation) => match prepare(&toolbox.0, *invocation, &context)? {
            Ok(call) => Box::new(call),
            Err(refusal) => {
                let completed = Completed::answered(Outcome::Error(refusal));
                return Ok(Stretch::Ended(Box::new(completed)));
            }
        },
        Step::Resume(call) => call,
    };
    let (tool, fencing) = (Arc::clone(&call.tool), call.fencing);
    let stretch = run(&toolbox, call, &context).await;
    stretch.map_err(|error| marked(&toolbox, &tool, fencing, error))
}
