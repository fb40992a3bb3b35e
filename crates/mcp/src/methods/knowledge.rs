//! Knowledge as resources and as a prompt.
//!
//! A subject is `kb://<topic>/<slug>`. Reading, listing and completing subjects are calls of the
//! tool `learn` by the client, and obey all of its rules: without that tool there is no knowledge.

use kitbag_base::text::{printable, shown};
use kitbag_contract::ToolName;
use kitbag_toolbox::{Invocation, KNOWLEDGE_PROMPT, KNOWLEDGE_SCHEME, Toolbox, ToolboxError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptResult, Prompt, PromptMessage,
    Reference, Resource, ResourceTemplate, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::methods::call::{call_context, warn_unlogged};
use crate::methods::outcome::internal;
use crate::methods::skills::ServedSkills;
use crate::session::Session;

const SCHEME: &str = KNOWLEDGE_SCHEME;
const TEMPLATE: &str = "kb://{topic}/{+slug}";
const PROMPT: &str = KNOWLEDGE_PROMPT;
pub(crate) const MIME_TYPE: &str = "text/markdown";

/// Characters that are not escaped in the topic or the slug of a URI.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PLAIN_PATH: &AsciiSet = &PLAIN.remove(b'/');

/// Returns every listed subject of every topic, except for the files of skills.
pub(crate) async fn resources(
    session: &Session,
    skills: &ServedSkills,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<Resource>, ErrorData> {
    let generation = session.generation();
    let mut all = Vec::new();
    if !generation.toolbox.has_knowledge() {
        return Ok(all);
    }
    for topic in generation.toolbox.config().topics.values() {
        if !topic.enable.value {
            continue;
        }
        let context = call_context(session, context);
        match generation.toolbox.subjects(&topic.id, context).await.map_err(failed)? {
            Ok(names) => {
                let slugs = names.subjects.iter();
                let slugs = slugs.filter(|slug| !skills.has_subject(&topic.id, slug));
                all.extend(slugs.map(|slug| resource(&topic.id, slug)));
            }
            Err(error) => tracing::warn!("knowledge: {}", printable(&error.message)),
        }
    }
    warn_unlogged(&generation.toolbox);
    Ok(all)
}

/// Returns the template of subject URIs, if there is knowledge.
pub(crate) fn template(session: &Session) -> Option<ResourceTemplate> {
    let template = ResourceTemplate::new(TEMPLATE, "subject")
        .with_title("Subject of the knowledge base")
        .with_description("Any subject of a topic, even an unlisted one.")
        .with_mime_type(MIME_TYPE);
    session.generation().toolbox.has_knowledge().then_some(template)
}

/// Returns the call that reads one subject, with its tool.
///
/// # Errors
///
/// If the URI is not a subject, the topic does not exist, or `learn` is off.
pub(crate) fn subject(toolbox: &Toolbox, uri: &str) -> Result<(ToolName, Invocation), ErrorData> {
    let Some((topic, slug)) = parse(uri) else {
        return Err(not_found(uri, &format!("the URI of a subject is `{TEMPLATE}`")));
    };
    toolbox.subject(&topic, &slug).map_err(|error| not_found(uri, &error.message))
}

/// Returns the error for a URI that is not found.
pub(crate) fn not_found(uri: &str, why: &str) -> ErrorData {
    let message = format!("there is no resource `{}`: {why}", shown(uri));
    ErrorData::resource_not_found(message, Some(serde_json::json!({ "uri": uri })))
}

/// Completes the topic and the slug of a URI.
pub(crate) async fn complete(
    session: &Session,
    request: CompleteRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CompleteResult, ErrorData> {
    let Reference::Resource(reference) = &request.r#ref else {
        return Ok(CompleteResult::default());
    };
    let toolbox = session.generation().toolbox.clone();
    if reference.uri != TEMPLATE || !toolbox.has_knowledge() {
        return Ok(CompleteResult::default());
    }
    let typed = request.argument.value.to_lowercase();
    let known = request.context.and_then(|context| context.arguments).unwrap_or_default();
    let names = match &*request.argument.name {
        "topic" => toolbox.topics().flatten().map(|topic| topic.id.clone()).collect(),
        "slug" => match known.get("topic").cloned() {
            None => Vec::new(),
            Some(topic) => {
                let context = call_context(session, context);
                let subjects = toolbox.subjects(&topic, context).await.map_err(failed)?;
                subjects.map(|names| names.subjects).unwrap_or_default()
            }
        },
        _ => Vec::new(),
    };
    // Names that start with the text come before names that only contain it.
    let (starting, holding): (Vec<_>, Vec<_>) = names
        .into_iter()
        .filter(|name: &String| name.to_lowercase().contains(&typed) && !toolbox.leaves_out(name))
        .partition(|name| name.to_lowercase().starts_with(&typed));
    let mut values: Vec<_> = starting.into_iter().chain(holding).collect();
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::new(values).map_err(|error| internal(&error))?;
    completion.has_more = Some(total > CompletionInfo::MAX_VALUES);
    completion.total = u32::try_from(total).ok();
    Ok(CompleteResult::new(completion))
}

/// Returns the prompt with the block of knowledge, if there is knowledge.
pub(crate) fn listed_prompt(session: &Session) -> Option<Prompt> {
    let description =
        "The topics of the knowledge base, and the documents that every session needs.";
    let prompt = Prompt::new(PROMPT, Some(description), None).with_title("Knowledge");
    session.generation().toolbox.has_knowledge().then_some(prompt)
}

/// # Errors
///
/// If no prompt has the name.
pub(crate) async fn prompt(
    session: &Session,
    name: &str,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResult, ErrorData> {
    let toolbox = session.generation().toolbox.clone();
    if name != PROMPT || !toolbox.has_knowledge() {
        return Err(no_prompt(name));
    }
    let context = call_context(session, context);
    let block = toolbox.knowledge_prompt(context).await;
    warn_unlogged(&toolbox);
    let block = block.map_err(failed)?;
    for problem in &block.problems {
        tracing::warn!("knowledge: {}", printable(problem));
    }
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, block.text)]))
}

pub(crate) fn no_prompt(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no prompt `{}`", shown(name)), None)
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

/// Returns the topic and the slug of a subject's URI.
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
    fn topic_and_slug_round_trip_through_the_uri() {
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
