//! The run of native code, and its inner calls.

use std::time::Instant;

use kitbag_contract::{Action, Outcome};
use kitbag_host::{Call, Completion};
use tokio::sync::Semaphore;

use super::edge::Nested;
use crate::call::context::{CallContext, Unattended};
use crate::call::invocation::Invocation;
use crate::call::outcome::{CallOutcome, PreparedCall};
use crate::registry::Toolbox;
use crate::sources::native::{CallTools, InnerOutcome, NativeCall, NativeTool};

impl CallTools for Toolbox {
    fn call(&self, invocation: Invocation, context: CallContext) -> InnerOutcome<'_> {
        Box::pin(async move {
            let ended = self.drive(&Nested, invocation, context, &mut Unattended).await?;
            let Ok(completion) = CallOutcome::completion(ended);
            Ok(completion.result?)
        })
    }
}

/// Runs code of the embedding program. Its inner calls end when it has to end.
pub(super) async fn run_native(
    tool: &dyn NativeTool,
    call: &PreparedCall,
    toolbox: &Toolbox,
    context: &CallContext,
) -> Completion {
    let limits = &call.call.limits;
    let arguments = serde_json::from_str(&call.call.arguments).expect("it was made of an object");
    if call.call.action == Action::FormatArguments {
        return Completion::answered(Outcome::Success(rendered(&call.call)));
    }
    let mut inner = context.clone();
    inner.run.deadline = Instant::now().checked_add(context.run.time(limits.time));
    let native = NativeCall {
        arguments: &arguments,
        answers: &call.answers,
        tool: &call.tool.name,
        tools: toolbox,
        context: &inner,
        turn: Semaphore::new(1),
    };
    toolbox.host().run_native(limits, &context.run, tool.call(native)).await
}

/// Returns a call in a form for a person, for a tool that does not render the call itself.
pub(super) fn rendered(call: &Call) -> String {
    format!("{} {}", call.name, call.arguments)
}
