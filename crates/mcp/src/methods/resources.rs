//! Resources: `resources/list`, `resources/templates/list` and `resources/read`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kitbag_contract::{Content, ResourceBody};
use kitbag_host::Completion;
use kitbag_toolbox::{Invocation, KNOWLEDGE_SCHEME, SERVER_SCHEME, ScreeningReport};
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Map;

use crate::methods::call::{Call, CallResult, Earlier};
use crate::methods::component_items::{find, listed, stopped, success};
use crate::methods::knowledge::{self, not_found};
use crate::methods::outcome::{meta, report};
use crate::methods::page::page;
use crate::methods::server_items;
use crate::methods::skills::{self, ServedSkills};
use crate::session::Session;
use crate::session::client::Client;
use crate::session::kept_results::RESULT_SCHEME;

pub(crate) async fn list(
    session: &Session,
    request: Option<PaginatedRequestParams>,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let skills = ServedSkills::read(session, context).await?;
    let mut all = knowledge::resources(session, &skills, context).await?;
    all.extend(skills.resources());
    let served = listed(session).await?;
    let of_servers = server_items::listed(session).await?;
    all.extend(served.resources.iter().chain(&of_servers.resources).map(|item| {
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

pub(crate) async fn templates(
    session: &Session,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourceTemplatesResult, ErrorData> {
    let served = listed(session).await?;
    let of_servers = server_items::listed(session).await?;
    let templates = served.templates.iter().chain(&of_servers.templates).map(|item| {
        let template = &item.description;
        let mut listed = ResourceTemplate::new(&template.uri_template, &template.name);
        listed.title.clone_from(&template.title);
        listed.description.clone_from(&template.description);
        listed.mime_type.clone_from(&template.mime_type);
        listed
    });
    let mut all: Vec<_> = knowledge::template(session).into_iter().chain(templates).collect();
    all.sort_by(|one, other| one.uri_template.cmp(&other.uri_template));
    let (templates, next) = page(&all, |template| &template.uri_template, request)?;
    let mut result = ListResourceTemplatesResult::with_all_items(templates);
    result.next_cursor = next;
    Ok(result)
}

/// Reads a resource: the component's emitted content, then its text, or the contents of a server.
///
/// # Errors
///
/// If the URI is not served, or the component or server refuses.
pub(crate) async fn read(
    session: &Session,
    request: ReadResourceRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = request.uri;
    if uri.starts_with(RESULT_SCHEME) {
        let kept = session.server.kept_results().get(session, context, &uri);
        let kept =
            kept.ok_or_else(|| not_found(&uri, "this session has no result with this URI"))?;
        let contents = ResourceContents::text(kept.text.as_ref(), &uri);
        let mut result = ReadResourceResult::new(vec![contents.with_mime_type("text/plain")]);
        let screening = ScreeningReport { is_untrusted: kept.is_untrusted, ..Default::default() };
        result.meta = meta(&screening);
        return Ok(result.into());
    }
    if uri.starts_with(skills::SCHEME)
        && let Some(read) = skills::read(session, &uri, context).await?
    {
        return Ok(read);
    }
    let (generation, tool, mime_type, invocation) = match &uri {
        uri if uri.starts_with(KNOWLEDGE_SCHEME) => {
            let generation = session.generation();
            let (tool, invocation) = knowledge::subject(&generation.toolbox, uri)?;
            (generation, tool, Some(knowledge::MIME_TYPE.to_owned()), invocation)
        }
        uri if uri.starts_with(SERVER_SCHEME) => {
            let generation = session.generation();
            let item = generation.toolbox.server_resource(uri);
            let item = item.ok_or_else(|| not_found(uri, "no offered server has this URI"))?;
            let tool = item.tool.clone();
            (generation, tool, None, Invocation::server_item(item, Map::new()))
        }
        uri => {
            let found = find(session, |served| {
                let (tool, mime_type) = served.resource(uri)?;
                Some((tool.clone(), mime_type.map(str::to_owned)))
            });
            let (generation, (tool, mime_type)) =
                found.await?.ok_or_else(|| not_found(uri, "no listed resource has this URI"))?;
            let invocation = Invocation::resource(tool.clone(), uri);
            (generation, tool, mime_type, invocation)
        }
    };
    let call = Call::new(session, context, tool.as_str(), request.input_responses);
    let ended = call.run(&generation, invocation, request.request_state.map(Earlier::Sealed)).await;
    let (completion, screening) = match ended.map_err(stopped)? {
        CallResult::Done(done) => (done.completion, done.screening),
        CallResult::Open(open) => (open.completion, open.screening),
        CallResult::Asks(asked) => return Ok(ReadResourceResponse::InputRequired(asked)),
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
    result.meta = meta(&screening);
    Ok(result.into())
}

/// Converts emitted content into the contents of the resource that was read.
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
        // RFC 2483 defines this text form for a list of links.
        Content::Link(link) => {
            ResourceContents::text(&link.uri, uri).with_mime_type("text/uri-list")
        }
    }
}
