//! Prompts and resources of MCP servers, which are offered beside those of components.
//!
//! Lists have what the servers listed last, so that no server can delay a list.

use std::time::Duration;

use kitbag_contract::{Content, Resource, ResourceBody};
use kitbag_toolbox::{PromptRole, ServedItems, ServerItem, ServerSubject};
use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, PromptMessage, Reference,
    Role,
};

use crate::methods::component_items;
use crate::methods::content::content_block;
use crate::methods::outcome::internal;
use crate::session::Session;

/// Maximum time that a completion waits for a server.
const COMPLETION_TIME: Duration = Duration::from_secs(2);

/// Returns the prompts and resources that servers listed.
pub(super) async fn listed(session: &Session) -> Result<ServedItems, ErrorData> {
    let generation = session.generation();
    // The text is screened, which takes time if there are many.
    let listed = tokio::task::spawn_blocking(move || generation.toolbox.server_items());
    listed.await.map_err(|error| internal(&error))
}

/// Finds a prompt of a server. A prompt of a component with the same name takes precedence.
pub(super) async fn prompt(session: &Session, name: &str) -> Result<Option<ServerItem>, ErrorData> {
    if component_items::listed(session).await?.prompt(name).is_some() {
        return Ok(None);
    }
    let (generation, name) = (session.generation(), name.to_owned());
    let found = tokio::task::spawn_blocking(move || generation.toolbox.server_prompt(&name));
    found.await.map_err(|error| internal(&error))
}

/// Returns the messages of a server's prompt.
pub(super) fn messages(emitted: &[Content], roles: &[PromptRole]) -> Vec<PromptMessage> {
    let messages = emitted.iter().zip(roles).map(|(content, role)| {
        let role = match role {
            PromptRole::User => Role::User,
            PromptRole::Assistant => Role::Assistant,
        };
        let block = match content {
            Content::Resource(Resource { uri, body: ResourceBody::Text(text), .. })
                if uri.is_empty() =>
            {
                ContentBlock::text(text)
            }
            content => content_block(content),
        };
        PromptMessage::new(role, block)
    });
    messages.collect()
}

/// Completes an argument of a server's prompt or template. Empty if the server does not run or does
/// not answer in time.
pub(crate) async fn complete(
    session: &Session,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let subject = match &request.r#ref {
        Reference::Prompt(prompt) => ServerSubject::Prompt(&prompt.name),
        Reference::Resource(template) => ServerSubject::Template(&template.uri),
        _ => return Ok(CompleteResult::default()),
    };
    let argument = (&*request.argument.name, &*request.argument.value);
    let known = request.context.as_ref().and_then(|context| context.arguments.clone());
    let toolbox = session.generation().toolbox.clone();
    let work = toolbox.complete_server(subject, argument, known);
    let values = match tokio::time::timeout(COMPLETION_TIME, work).await {
        Ok(Ok(values)) => values,
        Ok(Err(error)) => {
            tracing::debug!("no completion: {error}");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let completion = CompletionInfo::new(values).map_err(|error| internal(&error))?;
    Ok(CompleteResult::new(completion))
}
