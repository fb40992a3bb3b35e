//! Prompts and resources of components, which are served beside the server's own knowledge.
//!
//! Getting a prompt or resource runs the component like a call, with the same questions.

use std::sync::Arc;

use kitbag_config::Audience;
use kitbag_contract::{ErrorKind, Outcome, Question};
use kitbag_host::{Account, CallError};
use kitbag_toolbox::{ServedItems, ToolboxError};
use rmcp::ErrorData;
use rmcp::model::ClientCapabilities;

use crate::methods::call::Stop;
use crate::methods::outcome::{TRY_AGAIN, internal};
use crate::server::Server;
use crate::server::background::LISTING_TIME;
use crate::server::generation::Generation;
use crate::session::Session;
use crate::session::client::Client;

/// Loads, one after the other, the tools whose prompts and resources are not known yet.
async fn load(server: &Server, generation: &Generation, served: &ServedItems) {
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

/// Returns the known prompts and resources. Reads only the cache.
async fn known(generation: &Arc<Generation>) -> Result<Arc<ServedItems>, ErrorData> {
    if let Some(served) = generation.served.known() {
        return Ok(served);
    }
    let generation = Arc::clone(generation);
    let read = tokio::task::spawn_blocking(move || generation.served.get(&generation.toolbox));
    read.await.map_err(|error| internal(&error))
}

pub(super) async fn listed(session: &Session) -> Result<Arc<ServedItems>, ErrorData> {
    if let Some(served) = session.generation().served.known() {
        return Ok(served);
    }
    session.server.background().described(LISTING_TIME).await;
    known(&session.generation()).await
}

/// Finds a prompt or resource by name. Loads the tools that are not described yet if necessary.
pub(crate) async fn find<T>(
    session: &Session,
    find: impl Fn(&ServedItems) -> Option<T>,
) -> Result<Option<(Arc<Generation>, T)>, ErrorData> {
    let generation = session.generation();
    let served = known(&generation).await?;
    let mut found = find(&served);
    if found.is_none() && !served.undescribed.is_empty() {
        load(&session.server, &generation, &served).await;
        found = find(&*known(&generation).await?);
    }
    Ok(found.map(|found| (generation, found)))
}

/// Returns the text of a successful run. `refuse` turns the component's refusal into an error.
pub(super) fn success(
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

/// Returns the error for a question that the client cannot put to a person.
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

pub(super) fn stopped(stop: Stop) -> ErrorData {
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
        // The message includes the time of the next permitted call.
        ErrorKind::Rate => internal(&message),
        kind if kind.is_transient() => internal(&format_args!("{message} {TRY_AGAIN}")),
        _ => internal(&message),
    }
}
