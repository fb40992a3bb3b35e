//! The prompts and resources of a server.

use std::time::Duration;

use kitbag_contract::{
    PromptArgument, PromptDescription, ResourceDescription, ResourceTemplateDescription,
};
use kitbag_policy::server::ServerName;
use rmcp::RoleClient;
use rmcp::model::{PaginatedRequestParams, Prompt, Resource, ResourceTemplate};
use rmcp::service::{Peer, ServiceError};
use serde::Serialize;
use tokio::time::timeout;

use crate::client::Redaction;

/// The largest number of pages of a list.
const PAGES: usize = 50;

/// The largest number of items of a list. The rest is omitted.
const ITEMS: usize = 1000;

/// The largest size of a list, as JSON. The rest is omitted.
const BYTES: usize = 1 << 20;

/// The largest size of an item, as JSON. Larger items are omitted.
const ITEM_BYTES: usize = 16 << 10;

/// The time in which a server must list everything.
const TIME: Duration = Duration::from_secs(30);

/// The prompts and resources that a server listed last. All text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerItems {
    /// The prompts, by the server's names.
    pub prompts: Vec<PromptDescription>,
    /// The resources, by the server's URIs.
    pub resources: Vec<ResourceDescription>,
    /// Templates of further resources.
    pub templates: Vec<ResourceTemplateDescription>,
}

/// A change of what a server offers besides its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of their templates.
    Resources,
    /// A resource with a subscription.
    Resource {
        /// The server.
        server: ServerName,
        /// The server's URI.
        uri: String,
    },
}

/// Lists what a server offers besides its tools. A list that fails is as it was before.
pub(crate) async fn list(
    peer: &Peer<RoleClient>,
    redaction: &Redaction,
    before: ServerItems,
) -> ServerItems {
    let mut items = before.clone();
    let listed = timeout(TIME, async {
        let Some(info) = peer.peer_info() else { return };
        if info.capabilities.prompts.is_some() {
            let pages = pages(async |params| {
                let page = peer.list_prompts(Some(params)).await?;
                Ok((page.prompts, page.next_cursor))
            });
            replace(&mut items.prompts, pages.await, |prompt| {
                text_of(prompt, redaction, of_prompt)
            });
        }
        if info.capabilities.resources.is_some() {
            let pages_of = pages(async |params| {
                let page = peer.list_resources(Some(params)).await?;
                Ok((page.resources, page.next_cursor))
            });
            let resource = |item: Resource| text_of(item, redaction, of_resource);
            replace(&mut items.resources, pages_of.await, resource);
            let pages_of = pages(async |params| {
                let page = peer.list_resource_templates(Some(params)).await?;
                Ok((page.resource_templates, page.next_cursor))
            });
            let template = |item: ResourceTemplate| text_of(item, redaction, of_template);
            replace(&mut items.templates, pages_of.await, template);
        }
    });
    if listed.await.is_err() {
        tracing::debug!("a server did not list its prompts and resources in time");
    }
    items
}

/// Reads the pages of a list, within its limits.
async fn pages<T: Serialize>(
    page: impl AsyncFn(PaginatedRequestParams) -> Result<(Vec<T>, Option<String>), ServiceError>,
) -> Result<Vec<T>, ServiceError> {
    let (mut all, mut bytes, mut cursor) = (Vec::new(), 0, None);
    for _ in 0..PAGES {
        let (items, next) = page(PaginatedRequestParams::default().with_cursor(cursor)).await?;
        for item in items {
            let size = serde_json::to_vec(&item).map_or(usize::MAX, |text| text.len());
            if size > ITEM_BYTES {
                continue;
            }
            bytes += size;
            if all.len() == ITEMS || bytes > BYTES {
                return Ok(all);
            }
            all.push(item);
        }
        if next.is_none() {
            break;
        }
        cursor = next;
    }
    Ok(all)
}

fn replace<T, U>(
    items: &mut Vec<U>,
    listed: Result<Vec<T>, ServiceError>,
    read: impl Fn(T) -> Option<U>,
) {
    match listed {
        Ok(listed) => *items = listed.into_iter().filter_map(read).collect(),
        Err(error) => tracing::debug!("a server did not list: {error}"),
    }
}

/// Reads an item without the secrets of the server.
fn text_of<T: Serialize + serde::de::DeserializeOwned, U>(
    item: T,
    redaction: &Redaction,
    read: impl FnOnce(T) -> U,
) -> Option<U> {
    let text = redaction.text(serde_json::to_string(&item).ok()?);
    serde_json::from_str(&text).ok().map(read)
}

fn of_prompt(prompt: Prompt) -> PromptDescription {
    let arguments = prompt.arguments.unwrap_or_default().into_iter();
    let arguments = arguments.map(|argument| PromptArgument {
        name: argument.name,
        title: argument.title,
        description: argument.description,
        required: argument.required == Some(true),
    });
    PromptDescription {
        name: prompt.name,
        title: prompt.title,
        description: prompt.description,
        arguments: arguments.collect(),
    }
}

fn of_resource(resource: Resource) -> ResourceDescription {
    ResourceDescription {
        uri: resource.uri,
        name: resource.name,
        title: resource.title,
        description: resource.description,
        mime_type: resource.mime_type,
    }
}

fn of_template(template: ResourceTemplate) -> ResourceTemplateDescription {
    ResourceTemplateDescription {
        uri_template: template.uri_template,
        name: template.name,
        title: template.title,
        description: template.description,
        mime_type: template.mime_type,
    }
}
