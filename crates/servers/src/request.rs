//! Requests to a server besides calls of tools: prompts, resources and completions.

use std::collections::HashMap;

use kitbag_contract::{Content, Resource, ResourceBody};
use kitbag_policy::server::ServerName;
use rmcp::RoleClient;
use rmcp::model::{
    ArgumentInfo, CancelledNotificationParam, ClientRequest, CompleteRequest,
    CompleteRequestParams, CompletionContext, GetPromptRequest, GetPromptRequestParams,
    ReadResourceRequest, ReadResourceRequestParams, Reference, RequestId, Role, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use crate::client::{self, message};
use crate::connection::Lease;
use crate::error::ServerError;
use crate::pool::Servers;
use crate::target::ServerTarget;

/// The contents of a resource. All text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadContents {
    /// The contents, with the server's URIs.
    pub contents: Vec<Content>,
    /// Why content was omitted.
    pub omitted: Vec<String>,
}

/// A rendered prompt. All text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderedPrompt {
    /// The messages.
    pub messages: Vec<RenderedMessage>,
    /// Why content was omitted.
    pub omitted: Vec<String>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedMessage {
    /// True if the message is one of the assistant, and not of the user.
    pub is_assistant: bool,
    /// The content. Text is a resource without a URI.
    pub content: Content,
}

/// The subject of a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// A prompt, by the server's name.
    Prompt(String),
    /// A template of resources, as the server lists it.
    Template(String),
}

impl Servers {
    /// Reads a resource by the server's URI. Starts the server if necessary.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if there is no answer.
    pub async fn read_resource(
        &self,
        target: &ServerTarget,
        uri: &str,
    ) -> Result<ReadContents, ServerError> {
        let lease = self.connect(target).await?;
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let ServerResult::ReadResourceResult(result) =
            request_to(&lease, &target.name, request.into()).await?
        else {
            return Err(unexpected(&target.name));
        };
        let mut read = ReadContents::default();
        for contents in result.contents {
            match client::checked_resource(contents, &lease.0.redaction) {
                Ok(content) => read.contents.push(content),
                Err(reason) => read.omitted.push(reason),
            }
        }
        Ok(read)
    }

    /// Renders a prompt by the server's name. Starts the server if necessary.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if there is no answer.
    pub async fn get_prompt(
        &self,
        target: &ServerTarget,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<RenderedPrompt, ServerError> {
        let lease = self.connect(target).await?;
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
        let request = GetPromptRequest::new(params);
        let ServerResult::GetPromptResult(result) =
            request_to(&lease, &target.name, request.into()).await?
        else {
            return Err(unexpected(&target.name));
        };
        let mut rendered = RenderedPrompt::default();
        for said in result.messages {
            let content = match client::block(said.content, &lease.0.redaction) {
                Ok(client::Block::Content(content)) => content,
                Ok(client::Block::Text(text)) => Content::Resource(Resource {
                    uri: String::new(),
                    mime_type: None,
                    body: ResourceBody::Text(text),
                }),
                Err(reason) => {
                    rendered.omitted.push(reason);
                    continue;
                }
            };
            let is_assistant = said.role == Role::Assistant;
            rendered.messages.push(RenderedMessage { is_assistant, content });
        }
        Ok(rendered)
    }

    /// Completes an argument. Returns no values if the server does not run or offers no completion.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if there is no answer.
    pub async fn complete(
        &self,
        target: &ServerTarget,
        subject: Completed,
        (argument, value): (&str, &str),
        known: Option<HashMap<String, String>>,
    ) -> Result<Vec<String>, ServerError> {
        let Some(lease) = self.lease(target) else { return Ok(Vec::new()) };
        let info = lease.0.peer.peer_info();
        if info.is_none_or(|info| info.capabilities.completions.is_none()) {
            return Ok(Vec::new());
        }
        let subject = match subject {
            Completed::Prompt(name) => Reference::for_prompt(name),
            Completed::Template(template) => Reference::for_resource(template),
        };
        let mut params = CompleteRequestParams::new(subject, ArgumentInfo::new(argument, value));
        params.context = known.map(CompletionContext::with_arguments);
        let request = CompleteRequest::new(params);
        match request_to(&lease, &target.name, request.into()).await? {
            ServerResult::CompleteResult(result) => {
                let values = result.completion.values.into_iter();
                Ok(values.map(|value| lease.0.redaction.text(value)).collect())
            }
            _ => Err(unexpected(&target.name)),
        }
    }
}

/// A request that the server works on. Dropping it cancels the request.
struct Pending {
    peer: Peer<RoleClient>,
    runtime: Handle,
    id: RequestId,
    is_done: bool,
}

/// Sends a request, and returns its result.
async fn request_to(
    lease: &Lease,
    server: &ServerName,
    request: ClientRequest,
) -> Result<ServerResult, ServerError> {
    let peer = &lease.0.peer;
    let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
    let handle = match sent {
        Ok(handle) => handle,
        Err(error) => return Err(lease.failed(server, error).await),
    };
    let (peer, runtime) = (peer.clone(), lease.0.runtime.clone());
    let mut pending = Pending { peer, runtime, id: handle.id, is_done: false };
    let response = handle.rx.await;
    pending.is_done = true;
    match response {
        Ok(Ok(ServerResult::InputRequiredResult(_))) => Err(ServerError::Protocol {
            server: server.clone(),
            reason: "asks for input, which is possible only in calls of tools".to_owned(),
        }),
        Ok(Ok(result)) => Ok(result),
        Ok(Err(ServiceError::McpError(error))) => {
            Err(ServerError::Answered { message: message(&error, &lease.0.redaction) })
        }
        Ok(Err(error)) => Err(lease.failed(server, error).await),
        Err(_) => Err(lease.failed(server, ServiceError::TransportClosed).await),
    }
}

fn unexpected(server: &ServerName) -> ServerError {
    let reason = "sent a result of another kind".to_owned();
    ServerError::Protocol { server: server.clone(), reason }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.is_done || self.peer.is_transport_closed() {
            return;
        }
        let (peer, id) = (self.peer.clone(), self.id.clone());
        self.runtime.spawn(async move {
            let reason = "the caller cancelled the request".to_owned();
            let _ = peer
                .notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason)))
                .await;
        });
    }
}
