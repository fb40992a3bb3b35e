//! Knowledge as resources and as a prompt.
//!
//! A subject is `kb://<topic>/<slug>`, read as `learn` delivers it, by the same
//! guest with the same grants.

use kitbag_contract::Outcome;
use kitbag_contract::text::shown;
use kitbag_toolbox::{CallContext, Caller, KNOWLEDGE_PROMPT, KNOWLEDGE_SCHEME, ToolboxError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptResult, Prompt, PromptMessage,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate, Role,
};

use crate::outcome::internal;
use crate::server::Server;

const SCHEME: &str = KNOWLEDGE_SCHEME;
const TEMPLATE: &str = "kb://{topic}/{+slug}";
const PROMPT: &str = KNOWLEDGE_PROMPT;
const MIME_TYPE: &str = "text/markdown";

/// What stands for itself in a topic's or a slug's part of a URI.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PLAIN_PATH: &AsciiSet = &PLAIN.remove(b'/');

/// Every listed subject of every topic.
pub(crate) async fn resources(server: &Server) -> Result<Vec<Resource>, ErrorData> {
    let generation = server.generation();
    let mut all = Vec::new();
    for topic in generation.toolbox.config().topics.values() {
        if !topic.enable.value {
            continue;
        }
        match generation.toolbox.subjects(&topic.id, own()).await.map_err(failed)? {
            Ok(names) => all.extend(names.subjects.iter().map(|slug| resource(&topic.id, slug))),
            Err(error) => tracing::warn!("knowledge: {}", error.message),
        }
    }
    Ok(all)
}

/// The form of all those URIs, where there is a topic.
pub(crate) fn template(server: &Server) -> Option<ResourceTemplate> {
    let template = ResourceTemplate::new(TEMPLATE, "subject")
        .with_title("Subject of the knowledge base")
        .with_description("A subject of a topic, also one that is not listed.")
        .with_mime_type(MIME_TYPE);
    let has_topics = server.generation().toolbox.topics().next().is_some();
    has_topics.then_some(template)
}

/// Reads one subject.
///
/// # Errors
///
/// For a URI that is not ours, and for what `learn` refuses.
pub(crate) async fn read(server: &Server, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let Some((topic, slug)) = parse(uri) else {
        return Err(not_found(uri, &format!("a subject is `{TEMPLATE}`")));
    };
    let toolbox = server.generation().toolbox.clone();
    match toolbox.subject(&topic, &slug, own()).await.map_err(failed)? {
        Outcome::Success(text) => {
            let contents = ResourceContents::text(text, uri).with_mime_type(MIME_TYPE);
            Ok(ReadResourceResult::new(vec![contents]))
        }
        Outcome::Error(error) => Err(not_found(uri, &error.message)),
        Outcome::NeedsInput(question) => Err(not_found(uri, &question.text)),
    }
}

/// The error for a URI that nothing is found under.
pub(crate) fn not_found(uri: &str, why: &str) -> ErrorData {
    let message = format!("there is no resource `{}`: {why}", shown(uri));
    ErrorData::resource_not_found(message, Some(serde_json::json!({ "uri": uri })))
}

/// Completes the topic and the slug of a URI.
pub(crate) async fn complete(
    server: &Server,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let Reference::Resource(reference) = &request.r#ref else {
        return Ok(CompleteResult::default());
    };
    if reference.uri != TEMPLATE {
        return Ok(CompleteResult::default());
    }
    let typed = request.argument.value.to_lowercase();
    let known = request.context.and_then(|context| context.arguments).unwrap_or_default();
    let names = match &*request.argument.name {
        "topic" => {
            let toolbox = server.generation().toolbox.clone();
            toolbox.topics().flatten().map(|topic| topic.id.clone()).collect()
        }
        "slug" => match known.get("topic").cloned() {
            None => Vec::new(),
            Some(topic) => {
                let toolbox = server.generation().toolbox.clone();
                let subjects = toolbox.subjects(&topic, own()).await.map_err(failed)?;
                subjects.map(|names| names.subjects).unwrap_or_default()
            }
        },
        _ => Vec::new(),
    };
    // What starts with it comes before what only holds it.
    let (starting, holding): (Vec<_>, Vec<_>) = names
        .into_iter()
        .filter(|name: &String| name.to_lowercase().contains(&typed))
        .partition(|name| name.to_lowercase().starts_with(&typed));
    let mut values: Vec<_> = starting.into_iter().chain(holding).collect();
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::new(values).map_err(|error| internal(&error))?;
    completion.has_more = Some(total > CompletionInfo::MAX_VALUES);
    completion.total = u32::try_from(total).ok();
    Ok(CompleteResult::new(completion))
}

/// The prompt with the block of knowledge, where there is a topic.
pub(crate) fn listed_prompt(server: &Server) -> Option<Prompt> {
    let description = "What the knowledge base holds, and what of it everybody should know.";
    let prompt = Prompt::new(PROMPT, Some(description), None).with_title("Knowledge");
    let has_topics = server.generation().toolbox.topics().next().is_some();
    has_topics.then_some(prompt)
}

/// # Errors
///
/// For a name that is no prompt.
pub(crate) async fn prompt(server: &Server, name: &str) -> Result<GetPromptResult, ErrorData> {
    let has_topics = server.generation().toolbox.topics().next().is_some();
    if name != PROMPT || !has_topics {
        return Err(no_prompt(name));
    }
    let toolbox = server.generation().toolbox.clone();
    let block = toolbox.knowledge_prompt(own()).await.map_err(failed)?;
    for problem in &block.problems {
        tracing::warn!("knowledge: {problem}");
    }
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, block.text)]))
}

/// The error for a name that is no prompt.
pub(crate) fn no_prompt(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no prompt `{}`", shown(name)), None)
}

/// The context of what the server itself asks.
pub(crate) fn own() -> CallContext {
    CallContext::new(Caller::Host)
}

fn failed(error: ToolboxError) -> ErrorData {
    internal(&error)
}

fn resource(topic: &str, slug: &str) -> Resource {
    Resource::new(uri(topic, slug), slug).with_mime_type(MIME_TYPE)
}

fn uri(topic: &str, slug: &str) -> String {
    let topic = utf8_percent_encode(topic, PLAIN);
    format!("{SCHEME}{topic}/{}", utf8_percent_encode(slug, PLAIN_PATH))
}

/// The topic and the slug of a subject's URI.
pub(crate) fn parse(uri: &str) -> Option<(String, String)> {
    let (topic, slug) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let decode = |text| percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned());
    let (topic, slug) = (decode(topic)?, decode(slug)?);
    (!topic.is_empty() && !slug.is_empty()).then_some((topic, slug))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_topic_and_slug_come_back_from_their_uri() {
        for (topic, slug, expected) in [
            ("skills", "rules/naming", "kb://skills/rules/naming"),
            ("a/b", "c d#e?f%20", "kb://a%2Fb/c%20d%23e%3Ff%2520"),
            ("Größe", "ü", "kb://Gr%C3%B6%C3%9Fe/%C3%BC"),
        ] {
            assert_eq!(uri(topic, slug), expected);
            assert_eq!(parse(expected), Some((topic.to_owned(), slug.to_owned())));
        }
        for other in ["kb://skills", "kb:///a", "kb://a/", "file:///etc/passwd", "kb://a/%ff"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
