//! The run of a server's tool.

use kitbag_contract::{Action, Outcome};
use kitbag_host::{Completion, RunContext};

use super::native::rendered;
use crate::call::outcome::PreparedCall;
use crate::error::ToolboxError;
use crate::registry::Toolbox;
use crate::sources::server_items::ServerItem;

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
    match call.item.clone() {
        Some(item) => called::fetch(call, &item, toolbox, context).await,
        None => called::run(call, toolbox, context).await,
    }
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

    pub(super) async fn fetch(
        call: &mut PreparedCall,
        _: &ServerItem,
        toolbox: &Toolbox,
        context: &RunContext,
    ) -> Result<Completion, ToolboxError> {
        run(call, toolbox, context).await
    }
}

#[cfg(feature = "servers")]
mod called {
    use std::sync::Arc;

    use kitbag_base::ByteSize;
    use kitbag_config::ToolSource;
    use kitbag_contract::{Content, ErrorInfo, LogLevel, Progress};
    use kitbag_host::{CallError, EventSink};
    use kitbag_policy::server::ServerName;
    use kitbag_servers::{
        Answered, CallEvents, Round, ServerCall, ServerError, ServerTarget, Servers,
    };

    use super::*;
    use crate::sources::server::{OpenCall, target, unavailable};
    use crate::sources::server_items::{OwnItem, PromptRole, public_uri};

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

    /// Reads a resource of a server, or renders a prompt.
    pub(super) async fn fetch(
        call: &mut PreparedCall,
        item: &ServerItem,
        toolbox: &Toolbox,
        context: &RunContext,
    ) -> Result<Completion, ToolboxError> {
        let (servers, target) = server(&call.tool.source, toolbox)?;
        let arguments =
            serde_json::from_str(&call.call.arguments).expect("it was made of an object");
        let (mut fetched, mut roles) = (None, Vec::new());
        let work = async {
            let got = match &item.own {
                OwnItem::Resource(uri) => {
                    servers.read_resource(&target, uri).await.map(|read| Answered {
                        content: read.contents,
                        omitted: read.omitted,
                        ..Answered::default()
                    })
                }
                OwnItem::Prompt(prompt) => {
                    let rendered = servers.get_prompt(&target, &prompt.name, arguments).await;
                    rendered.map(|rendered| {
                        let role = |is_assistant| match is_assistant {
                            true => PromptRole::Assistant,
                            false => PromptRole::User,
                        };
                        let messages = rendered.messages.into_iter();
                        let messages = messages.map(|it| (role(it.is_assistant), it.content));
                        let (of_messages, content) = messages.unzip();
                        roles = of_messages;
                        Answered { content, omitted: rendered.omitted, ..Answered::default() }
                    })
                }
            };
            match got {
                Ok(mut got) => {
                    got.content.iter_mut().for_each(|content| rename(&item.server, content));
                    fetched = Some(got);
                    Outcome::Success(String::new())
                }
                Err(error) => {
                    let transient = error.is_transient();
                    Outcome::Error(ErrorInfo { transient, ..ErrorInfo::new(error.to_string()) })
                }
            }
        };
        let limits = &call.call.limits;
        let mut completion = toolbox.host().run_native(limits, context, work).await;
        if let (Some(fetched), Ok(_)) = (fetched, &completion.result) {
            let kept = emit(&mut completion, fetched, limits.output, &context.events);
            call.roles = kept.into_iter().filter_map(|at| roles.get(at).copied()).collect();
        }
        Ok(completion)
    }

    /// Replaces a URI of a server by the URI under which clients read it.
    fn rename(server: &ServerName, content: &mut Content) {
        match content {
            Content::Resource(resource) if !resource.uri.is_empty() => {
                resource.uri = public_uri(server, &resource.uri);
            }
            Content::Link(link) => link.uri = public_uri(server, &link.uri),
            Content::Resource(_) | Content::Image(_) | Content::Audio(_) => {}
        }
    }

    /// Creates the call of a server's tool.
    fn begin(
        source: &ToolSource,
        arguments: &str,
        toolbox: &Toolbox,
    ) -> Result<OpenCall, ToolboxError> {
        let (servers, target) = server(source, toolbox)?;
        let ToolSource::Server(tool) = source else { unreachable!() };
        let arguments = serde_json::from_str(arguments).expect("it was made of an object");
        let definition = Arc::clone(&tool.definition);
        Ok(Box::new(ServerCall::new(servers, target, definition, arguments)))
    }

    /// Returns the connections and the server of a tool.
    fn server<'a>(
        source: &ToolSource,
        toolbox: &'a Toolbox,
    ) -> Result<(&'a Servers, ServerTarget), ToolboxError> {
        let ToolSource::Server(tool) = source else {
            return Err(CallError::Internal("the tool has no server".into()).into());
        };
        let Some(servers) = &toolbox.0.servers else {
            let reason = unavailable(&tool.server).to_string();
            return Err(ToolboxError::NotCallable { tool: tool.source(), reason });
        };
        Ok((servers, target(&toolbox.0, &tool.server, &tool.address, tool.era)))
    }

    fn outcome(answered: &mut Answered) -> Outcome {
        let text = std::mem::take(&mut answered.text);
        match answered.is_error {
            true => Outcome::Error(ErrorInfo::new(text)),
            false => Outcome::Success(text),
        }
    }

    /// Adds the content besides the text, as far as the limit on output allows. Returns the indices of
    /// the added content.
    fn emit(
        completion: &mut Completion,
        answered: Answered,
        limit: ByteSize,
        events: &EventSink,
    ) -> Vec<usize> {
        let omit = |reason: &str| {
            events.log(LogLevel::Warning, &format!("a part of the answer was omitted: {reason}"));
        };
        answered.omitted.iter().for_each(|reason| omit(reason));
        let mut taken = 0;
        let mut fits = |content: &Content| {
            let size = content.size();
            completion.usage.emitted_bytes += size as u64;
            if taken + size > limit.as_usize() {
                omit(&format!("it exceeds the limit `output`, {limit}"));
                return false;
            }
            taken += size;
            true
        };
        let content = answered.content.into_iter().enumerate();
        let (kept, emitted) = content.filter(|(_, content)| fits(content)).unzip();
        completion.emitted = emitted;
        kept
    }
}
