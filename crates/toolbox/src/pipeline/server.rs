//! The run of a server's tool.

use kitbag_contract::{Action, Outcome};
use kitbag_host::{Completion, RunContext};

use super::native::rendered;
use crate::call::outcome::PreparedCall;
use crate::error::ToolboxError;
use crate::registry::Toolbox;

/// Calls a server, or continues a call that waits for an answer.
///
/// # Errors
///
/// [`ToolboxError::NotAsRecorded`] if the tool changed since a person agreed to it.
pub(super) async fn run(
    call: &mut PreparedCall,
    toolbox: &Toolbox,
    context: &RunContext,
) -> Result<Completion, ToolboxError> {
    if call.call.action == Action::FormatArguments {
        return Ok(Completion::answered(Outcome::Success(rendered(&call.call))));
    }
    called::run(call, toolbox, context).await
}

#[cfg(not(feature = "servers"))]
mod called {
    use super::*;

    pub(super) async fn run(
        call: &mut PreparedCall,
        _: &Toolbox,
        _: &RunContext,
    ) -> Result<Completion, ToolboxError> {
        let reason = "this kitbag was built without servers".to_owned();
        Err(ToolboxError::NotCallable { tool: call.tool.name.to_string(), reason })
    }
}

#[cfg(feature = "servers")]
mod called {
    use std::sync::Arc;

    use kitbag_base::ByteSize;
    use kitbag_config::ToolSource;
    use kitbag_contract::{Content, ErrorInfo, LogLevel, Progress};
    use kitbag_host::{CallError, EventSink};
    use kitbag_servers::{Answered, CallEvents, Round, ServerCall, ServerError};

    use super::*;
    use crate::sources::server::{OpenCall, target, unavailable};

    struct Events(EventSink);

    impl CallEvents for Events {
        fn progress(&self, progress: Progress) {
            self.0.progress(progress);
        }

        fn log(&self, level: LogLevel, message: &str) {
            self.0.log(level, message);
        }
    }

    pub(super) async fn run(
        call: &mut PreparedCall,
        toolbox: &Toolbox,
        context: &RunContext,
    ) -> Result<Completion, ToolboxError> {
        let open = match &mut call.server {
            Some(open) => open,
            none => none.insert(begin(&call.tool.source, &call.call.arguments, toolbox)?),
        };
        let events: Arc<dyn CallEvents> = Arc::new(Events(context.events.clone()));
        let (mut answered, mut refused) = (None, None);
        let work = async {
            match Box::pin(open.run(&call.answers, &events)).await {
                Ok(Round::Answered(answer)) => outcome(answered.insert(answer)),
                Ok(Round::Asks(question)) => Outcome::NeedsInput(question),
                Err(error) => {
                    let (message, transient) = (error.to_string(), error.is_transient());
                    refused = Some(error).filter(ServerError::is_refusal);
                    Outcome::Error(ErrorInfo { transient, ..ErrorInfo::new(message) })
                }
            }
        };
        let limits = &call.call.limits;
        let mut completion = toolbox.host().run_native(limits, context, work).await;
        if let (Some(error), Ok(_)) = (refused, &completion.result) {
            let ToolSource::Server(own) = &call.tool.source else { unreachable!() };
            return Err(ToolboxError::NotAsRecorded {
                tool: call.tool.name.to_string(),
                reason: error.to_string(),
                update: own.server.to_string(),
            });
        }
        if let (Some(answered), Ok(_)) = (answered, &completion.result) {
            emit(&mut completion, answered, limits.output, &context.events);
        }
        Ok(completion)
    }

    /// Creates the call of a server's tool.
    fn begin(
        source: &ToolSource,
        arguments: &str,
        toolbox: &Toolbox,
    ) -> Result<OpenCall, ToolboxError> {
        let ToolSource::Server(tool) = source else {
            return Err(CallError::Internal("the tool has no server".into()).into());
        };
        let Some(servers) = &toolbox.0.servers else {
            let reason = unavailable(&tool.server).to_string();
            return Err(ToolboxError::NotCallable { tool: tool.source(), reason });
        };
        let target = target(&toolbox.0, &tool.server, &tool.address, tool.era);
        let arguments = serde_json::from_str(arguments).expect("it was made of an object");
        let definition = Arc::clone(&tool.definition);
        Ok(Box::new(ServerCall::new(servers, target, definition, arguments)))
    }

    fn outcome(answered: &mut Answered) -> Outcome {
        let text = std::mem::take(&mut answered.text);
        match answered.is_error {
            true => Outcome::Error(ErrorInfo::new(text)),
            false => Outcome::Success(text),
        }
    }

    /// Adds the content besides the text, as far as the limit on output allows.
    fn emit(completion: &mut Completion, answered: Answered, limit: ByteSize, events: &EventSink) {
        let omit = |reason: &str| {
            events.log(LogLevel::Warning, &format!("a part of the answer was omitted: {reason}"));
        };
        answered.omitted.iter().for_each(|reason| omit(reason));
        let mut taken = 0;
        let fits = |content: &Content| {
            let size = content.size();
            completion.usage.emitted_bytes += size as u64;
            if taken + size > limit.as_usize() {
                omit(&format!("it exceeds the limit `output`, {limit}"));
                return false;
            }
            taken += size;
            true
        };
        completion.emitted = answered.content.into_iter().filter(fits).collect();
    }
}
