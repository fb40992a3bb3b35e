//! Prompts: `prompts/list` and `prompts/get`.

use kitbag_host::Completion;
use kitbag_toolbox::{Invocation, KNOWLEDGE_PROMPT};
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    PaginatedRequestParams, Prompt, PromptArgument, PromptMessage, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::methods::call::{Call, CallResult, Earlier};
use crate::methods::component_items::{find, listed, stopped, success};
use crate::methods::content::content_block;
use crate::methods::knowledge::{self, no_prompt};
use crate::methods::outcome::{meta, report};
use crate::methods::page::page;
use crate::methods::server_items;
use crate::session::Session;
use crate::session::client::Client;

pub(crate) async fn list(
    session: &Session,
    request: Option<PaginatedRequestParams>,
) -> Result<ListPromptsResult, ErrorData> {
    let served = listed(session).await?;
    let of_servers = server_items::listed(session).await?.prompts;
    let of_servers =
        of_servers.iter().filter(|item| served.prompt(&item.description.name).is_none());
    let prompts = served.prompts.iter().chain(of_servers).map(|item| {
        let prompt = &item.description;
        let arguments = prompt.arguments.iter().map(|argument| {
            let mut listed = PromptArgument::new(&argument.name).with_required(argument.required);
            listed.title.clone_from(&argument.title);
            listed.description.clone_from(&argument.description);
            listed
        });
        let arguments: Vec<_> = arguments.collect();
        let arguments = (!arguments.is_empty()).then_some(arguments);
        let mut listed = Prompt::new(&prompt.name, prompt.description.as_ref(), arguments);
        listed.title.clone_from(&prompt.title);
        listed
    });
    let mut all: Vec<_> = knowledge::listed_prompt(session).into_iter().chain(prompts).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let (prompts, next) = page(&all, |prompt| &prompt.name, request)?;
    let mut result = ListPromptsResult::with_all_items(prompts);
    result.next_cursor = next;
    Ok(result)
}

/// Gets a prompt: the component's emitted content and its text, each as a user message, or the
/// messages of a server.
///
/// # Errors
///
/// If no prompt has the name, the arguments do not match, or the component or server refuses.
pub(crate) async fn get(
    session: &Session,
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let name = request.name;
    if name == KNOWLEDGE_PROMPT {
        return Ok(knowledge::prompt(session, &name, context).await?.into());
    }
    let arguments = request.arguments.unwrap_or_default();
    let (generation, tool, description, invocation) =
        match server_items::prompt(session, &name).await? {
            Some(item) => {
                let tool = item.tool.clone();
                let invocation = Invocation::server_item(item, arguments);
                (session.generation(), tool, None, invocation)
            }
            None => {
                let found = find(session, |served| served.prompt(&name).cloned()).await?;
                let (generation, item) = found.ok_or_else(|| no_prompt(&name))?;
                let (tool, description) = (item.tool.clone(), item.description.description.clone());
                (generation, tool, description, Invocation::prompt(item, arguments))
            }
        };
    let call = Call::new(session, context, tool.as_str(), request.input_responses);
    let ended = call.run(&generation, invocation, request.request_state.map(Earlier::Sealed)).await;
    let (completion, screening, roles) = match ended.map_err(stopped)? {
        CallResult::Done(done) => (done.completion, done.screening, done.roles),
        CallResult::Open(open) => (open.completion, open.screening, Vec::new()),
        CallResult::Asks(asked) => return Ok(GetPromptResponse::InputRequired(asked)),
    };
    report(tool.as_str(), &completion);
    let Completion { result, emitted, .. } = completion;
    let refuse = |message| ErrorData::invalid_params(message, None);
    let text = success(result, Client::of(context), refuse)?;
    let text = (!text.is_empty() || emitted.is_empty()).then(|| ContentBlock::text(text));
    let of_user = |block| PromptMessage::new(Role::User, block);
    let mut messages = match roles.is_empty() {
        true => emitted.iter().map(content_block).map(of_user).collect(),
        false => server_items::messages(&emitted, &roles),
    };
    messages.extend(text.map(of_user));
    let mut result = GetPromptResult::new(messages);
    (result.description, result.meta) = (description, meta(&screening));
    Ok(result.into())
}
