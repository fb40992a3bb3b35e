//! What components serve besides calls, beside the server's own knowledge:
//! prompts and resources.
//!
//! Getting one is a run like a call, with the same questions in between.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kitbag_config::Audience;
use kitbag_contract::{Content, ErrorKind, Outcome, Question, ResourceBody};
use kitbag_host::{Account, CallError, Completion};
use kitbag_toolbox::{Invocation, KNOWLEDGE_PROMPT, KNOWLEDGE_SCHEME, Served, ToolboxError};
use rmcp::model::{
    ClientCapabilities, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
    Prompt, PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::background::LISTING_TIME;
use crate::call::{Call, Earlier, Ended, Stop};
use crate::content::content_block;
use crate::era::Client;
use crate::knowledge::{self, no_prompt, not_found};
use crate::outcome::{TRY_AGAIN, internal, meta, report};
use crate::page::page;
use crate::server::{Generation, Server};
use crate::session::Session;

/// Has the tools loaded of which it is not known what they serve, one after the other.
async fn load(server: &Server, generation: &Generation, served: &Served) {
    for name in &served.undescribed {
        let name = name.as_str();
        let (toolbox, tool) = (generation.toolbox.clone(), name.to_owned());
        let load = move || toolbox.load(&tool).map(drop);
        match generation.toolbox.host().offload(&Account::of_tool(name), load).await {
            Ok(Ok(())) => generation.learned(server, name),
            Ok(Err(error)) => tracing::warn!(tool = name, "cannot be loaded: {error}"),
            Err(error) => tracing::warn!(tool = name, "cannot be loaded: {error}"),
        }
    }
}

/// What is served as far as it is known. It reads what is cached.
async fn known(generation: &Arc<Generation>) -> Result<Arc<Served>, ErrorData> {
    if let Some(served) = generation.served.known() {
        return Ok(served);
    }
    let generation = Arc::clone(generation);
    let read = tokio::task::spawn_blocking(move || generation.served.get(&generation.toolbox));
    read.await.map_err(|error| internal(&error))
}

/// What is served, for a list.
async fn listed(server: &Server) -> Result<Arc<Served>, ErrorData> {
    if let Some(served) = server.generation().served.known() {
        return Ok(served);
    }
    server.background().described(LISTING_TIME).await;
    known(&server.generation()).await
}

/// Finds something that is asked for by name, which is worth loading what is not
/// known yet.
pub(crate) async fn find<T>(
    server: &Server,
    find: impl Fn(&Served) -> Option<T>,
) -> Result<Option<(Arc<Generation>, T)>, ErrorData> {
    let generation = server.generation();
    let served = known(&generation).await?;
    let mut found = find(&served);
    if found.is_none() && !served.undescribed.is_empty() {
        load(server, &generation, &served).await;
        found = find(&*known(&generation).await?);
    }
    Ok(found.map(|found| (generation, found)))
}

/// All prompts, by name.
pub(crate) async fn prompts(
    server: &Server,
    request: Option<PaginatedRequestParams>,
) -> Result<ListPromptsResult, ErrorData> {
    let served = listed(server).await?;
    let prompts = served.prompts.iter().map(|item| {
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
    let mut all: Vec<_> = knowledge::listed_prompt(server).into_iter().chain(prompts).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let (prompts, next) = page(&all, |prompt| &prompt.name, request)?;
    let mut result = ListPromptsResult::with_all_items(prompts);
    result.next_cursor = next;
    Ok(result)
}

/// All resources that are listed, by URI.
pub(crate) async fn resources(
    session: &Session,
    request: Option<PaginatedRequestParams>,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let mut all = knowledge::resources(session, context).await?;
    let served = listed(&session.server).await?;
    all.extend(served.resources.iter().map(|item| {
        let resource = &item.description;
        let mut listed = Resource::new(&resource.uri, &resource.name);
        listed.title.clone_from(&resource.title);
        listed.description.clone_from(&resource.description);
        listed.mime_type.clone_from(&resource.mime_type);
        listed
    }));
    all.sort_by(|one, other| one.uri.cmp(&other.uri));
    let (resources, next) = page(&all, |resource| &resource.uri, request)?;
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = next;
    Ok(result)
}

/// The forms of further resources, by template.
pub(crate) async fn templates(
    server: &Server,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourceTemplatesResult, ErrorData> {
    let served = listed(server).await?;
    let templates = served.templates.iter().map(|item| {
        let template = &item.description;
        let mut listed = ResourceTemplate::new(&template.uri_template, &template.name);
        listed.title.clone_from(&template.title);
        listed.description.clone_from(&template.description);
        listed.mime_type.clone_from(&template.mime_type);
        listed
    });
    let mut all: Vec<_> = knowledge::template(server).into_iter().chain(templates).collect();
    all.sort_by(|one, other| one.uri_template.cmp(&other.uri_template));
    let (templates, next) = page(&all, |template| &template.uri_template, request)?;
    let mut result = ListResourceTemplatesResult::with_all_items(templates);
    result.next_cursor = next;
    Ok(result)
}

/// Gets a prompt: what the component emitted, then its text, each a message of
/// the user's.
///
/// # Errors
///
/// For a name that is no prompt, for arguments that do not fit, and for what the
/// component refuses.
pub(crate) async fn prompt(
    session: &Session,
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let name = request.name;
    if name == KNOWLEDGE_PROMPT {
        return Ok(knowledge::prompt(session, &name, context).await?.into());
    }
    let found = find(&session.server, |served| served.prompt(&name).cloned()).await?;
    let (generation, item) = found.ok_or_else(|| no_prompt(&name))?;
    let (tool, description) = (item.tool.clone(), item.description.description.clone());
    let arguments = request.arguments.unwrap_or_default();
    let call = Call::new(session, context, tool.as_str(), request.input_responses);
    let invocation = Invocation::prompt(item, arguments);
    let ended = call.run(&generation, invocation, request.request_state.map(Earlier::Sealed)).await;
    let (completion, marks) = match ended.map_err(stopped)? {
        Ended::Done(done) => (done.completion, done.marks),
        Ended::Open(open) => (open.completion, open.marks),
        Ended::Asks(asked) => return Ok(GetPromptResponse::InputRequired(asked)),
    };
    report(tool.as_str(), &completion);
    let Completion { result, emitted, .. } = completion;
    let refuse = |message| ErrorData::invalid_params(message, None);
    let text = success(result, Client::of(context), refuse)?;
    let text = (!text.is_empty() || emitted.is_empty()).then(|| ContentBlock::text(text));
    let blocks = emitted.iter().map(content_block).chain(text);
    let messages = blocks.map(|block| PromptMessage::new(Role::User, block)).collect();
    let mut result = GetPromptResult::new(messages);
    (result.description, result.meta) = (description, meta(&marks));
    Ok(result.into())
}

/// Reads a resource: what the component emitted, then its text.
///
/// # Errors
///
/// For a URI that is not served, and for what the component refuses.
pub(crate) async fn read(
    session: &Session,
    request: ReadResourceRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = request.uri;
    let (generation, tool, mime_type, invocation) = match uri.starts_with(KNOWLEDGE_SCHEME) {
        true => {
            let generation = session.server.generation();
            let (tool, invocation) = knowledge::subject(&generation.toolbox, &uri)?;
            (generation, tool, Some(knowledge::MIME_TYPE.to_owned()), invocation)
        }
        false => {
            let found = find(&session.server, |served| {
                let (tool, mime_type) = served.resource(&uri)?;
                Some((tool.clone(), mime_type.map(str::to_owned)))
            });
            let (generation, (tool, mime_type)) =
                found.await?.ok_or_else(|| not_found(&uri, "no resource is listed so"))?;
            let invocation = Invocation::resource(tool.clone(), &uri);
            (generation, tool, mime_type, invocation)
        }
    };
    let call = Call::new(session, context, tool.as_str(), request.input_responses);
    let ended = call.run(&generation, invocation, request.request_state.map(Earlier::Sealed)).await;
    let (completion, marks) = match ended.map_err(stopped)? {
        Ended::Done(done) => (done.completion, done.marks),
        Ended::Open(open) => (open.completion, open.marks),
        Ended::Asks(asked) => return Ok(ReadResourceResponse::InputRequired(asked)),
    };
    report(tool.as_str(), &completion);
    let Completion { result, emitted, .. } = completion;
    let text = success(result, Client::of(context), |message| not_found(&uri, &message))?;
    let text = (!text.is_empty() || emitted.is_empty()).then(|| {
        let contents = ResourceContents::text(text, &uri);
        match mime_type {
            Some(mime_type) => contents.with_mime_type(mime_type),
            None => contents,
        }
    });
    let given = emitted.iter().map(|content| contents(content, &uri));
    let mut result = ReadResourceResult::new(given.chain(text).collect());
    result.meta = meta(&marks);
    Ok(result.into())
}

/// What a component emitted, as the contents of the resource that was read.
fn contents(content: &Content, uri: &str) -> ResourceContents {
    match content {
        Content::Image(media) | Content::Audio(media) => {
            let data = BASE64_STANDARD.encode(&media.data);
            ResourceContents::blob(data, uri).with_mime_type(&media.mime_type)
        }
        Content::Resource(resource) => {
            let contents = match &resource.body {
                ResourceBody::Text(text) => ResourceContents::text(text, &resource.uri),
                ResourceBody::Blob(data) => {
                    ResourceContents::blob(BASE64_STANDARD.encode(data), &resource.uri)
                }
            };
            match &resource.mime_type {
                Some(mime_type) => contents.with_mime_type(mime_type),
                None => contents,
            }
        }
        // The form of a text that is a list of links (RFC 2483).
        Content::Link(link) => {
            ResourceContents::text(&link.uri, uri).with_mime_type("text/uri-list")
        }
    }
}

/// The text of a run that went well. `refuse` makes an error of what the
/// component says against it.
fn success(
    result: Result<Outcome, CallError>,
    client: Client,
    refuse: impl FnOnce(String) -> ErrorData,
) -> Result<String, ErrorData> {
    match result {
        Ok(Outcome::Success(text)) => Ok(text),
        Ok(Outcome::Error(error)) if error.transient => {
            Err(internal(&format_args!("{} {TRY_AGAIN}", error.message)))
        }
        Ok(Outcome::Error(error)) => Err(refuse(error.message)),
        Ok(Outcome::NeedsInput(question)) => Err(unanswered(&question, client)),
        Err(error) => Err(refusal(error.into())),
    }
}

/// The error where a person has to be asked and the client cannot do it.
fn unanswered(question: &Question, client: Client) -> ErrorData {
    let message = format!(
        "an answer from the user is needed, and the client does not offer to ask: {}",
        question.shown(),
    );
    match client.is_stateless {
        true => {
            let needed = ClientCapabilities::builder().enable_elicitation().build();
            let mut error = ErrorData::missing_required_client_capability(needed);
            error.message = message.into();
            error
        }
        false => ErrorData::invalid_request(message, None),
    }
}

fn stopped(stop: Stop) -> ErrorData {
    match stop {
        Stop::Protocol(error) => error,
        Stop::Toolbox(error) => refusal(error),
    }
}

fn refusal(error: ToolboxError) -> ErrorData {
    let message = error.message_for(Audience::Model, None);
    match error.kind() {
        ErrorKind::Arguments | ErrorKind::State => ErrorData::invalid_params(message, None),
        ErrorKind::Declined | ErrorKind::Answer => ErrorData::invalid_request(message, None),
        // The message says when.
        ErrorKind::Rate => internal(&message),
        kind if kind.is_transient() => internal(&format_args!("{message} {TRY_AGAIN}")),
        _ => internal(&message),
    }
}
