//! The host's half of `learn`: which topic is meant, and which directory that
//! is. Everything about documents is the guest's.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::sync::Arc;

use kitbag_config::{Config, ToolSource, Topic};
use kitbag_contract::text::{alternatives, nearest, shown};
use kitbag_contract::{Action, ByteSize, ErrorInfo, Limits, Outcome};
use kitbag_files::{OpenError, locate};
use kitbag_host::{Call, Cancellation, Component, ComponentSource};
use kitbag_policy::{Access, DirectoryGrant, Grants, GuestPath};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::ToolboxError;
use crate::{Inner, metering};

/// Where `learn` finds the documents of a topic.
pub const TOPIC_GUEST_PATH: &str = "/subjects";

/// The built-in tool that reads knowledge.
const LEARN: &str = "learn";

/// The argument with which the host tells `learn` about the topic.
pub(crate) const TOPIC_KEY: &str = "_topic";

/// The argument with which the host asks `learn` for its part of the prompt.
const VIEW_KEY: &str = "_view";

/// What knowledge adds to a system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnowledgePrompt {
    /// The block; empty where there is nothing to tell.
    pub text: String,
    /// What is missing from it, and why: a line for each topic.
    pub problems: Vec<String>,
}

/// The subjects of a topic that are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Subjects {
    /// Their slugs, in order. Untrusted text.
    pub subjects: Vec<String>,
    /// How many more there are than fit the output limit.
    pub left_out: usize,
}

/// What `learn` answers about one topic for the prompt.
#[derive(Deserialize)]
struct TopicView {
    /// The rendered subjects that are learned, where there are any.
    learned: Option<String>,
    /// Whether there is more to be loaded.
    available: bool,
}

/// Whether a tool is `learn`, by whatever name.
pub(crate) fn is_learn(tool: &kitbag_config::Tool) -> bool {
    matches!(&tool.source.value, ToolSource::Builtin { name } if name.value == LEARN)
}

/// Finds the topic that the arguments name, and tells the tool about it.
///
/// The answer is the directory that the call is granted.
///
/// # Errors
///
/// What the tool would answer: the topic is unknown, or its directory missing.
pub(crate) fn prepare(
    inner: &Inner,
    arguments: &mut Map<String, Value>,
    output: ByteSize,
) -> Result<DirectoryGrant, ErrorInfo> {
    let asked = arguments.get("topic").and_then(Value::as_str).unwrap_or_default().to_owned();
    let topic = find(&inner.config, &asked)?;
    let grant = grant(inner, topic)?;
    arguments.insert(TOPIC_KEY.into(), injected(topic, output));
    Ok(grant)
}

/// Every enabled topic, or what is wrong with it.
pub(crate) fn topics(inner: &Inner) -> impl Iterator<Item = Result<&Topic, ErrorInfo>> {
    enabled(&inner.config).map(|topic| grant(inner, topic).map(|_| topic))
}

/// What is added to the description of `learn`, so that a model knows what it
/// can ask for. The schema stays the same whatever is configured.
pub(crate) fn topics_for_model(config: &Config) -> String {
    let lines: Vec<_> = enabled(config).map(topic_line).collect();
    match lines.is_empty() {
        true => "\n\nNo topics are configured.".into(),
        false => format!("\n\nTopics:\n{}", lines.join("\n")),
    }
}

/// Puts the block for a system prompt together, one topic after the other.
pub(crate) fn prompt(
    inner: &Inner,
    cancellation: &Cancellation,
) -> Result<KnowledgePrompt, ToolboxError> {
    let mut learned = Vec::new();
    let mut available = Vec::new();
    let mut problems = Vec::new();
    if enabled(&inner.config).next().is_none() {
        return Ok(KnowledgePrompt::default());
    }
    let learn = Learn::load(inner)?;
    for topic in enabled(&inner.config) {
        match learn.ask::<TopicView>(topic, "prompt", cancellation)? {
            Ok(view) => {
                learned.extend(view.learned);
                available.extend(view.available.then(|| topic_line(topic)));
            }
            // The learned subjects alone exceed the limit, so the answer was
            // cut; it cannot be delivered in part.
            Err(Unanswered::Cut) => problems.push(format!(
                "the learned subjects of topic `{}` do not fit the output limit of {}; raise \
                 `limits.output` of `{LEARN}` or learn fewer",
                shown(&topic.id),
                learn.limits.output,
            )),
            Err(Unanswered::Error(error)) => problems.push(error.message),
        }
    }
    let text = render(&learned, &available, learn.tool_name());
    Ok(KnowledgePrompt { text, problems })
}

/// Lists the subjects of a topic, by its id.
pub(crate) fn subjects(
    inner: &Inner,
    topic: &str,
    cancellation: &Cancellation,
) -> Result<Result<Subjects, ErrorInfo>, ToolboxError> {
    let learn = Learn::load(inner)?;
    let topic = match find(&inner.config, topic) {
        Ok(topic) => topic,
        Err(error) => return Ok(Err(error)),
    };
    Ok(match learn.ask::<Subjects>(topic, "names", cancellation)? {
        Ok(subjects) => Ok(subjects),
        Err(Unanswered::Error(error)) => Err(error),
        Err(Unanswered::Cut) => Ok(Subjects::default()),
    })
}

/// Loads one subject as the model reads it, by its exact slug.
pub(crate) fn subject(
    inner: &Inner,
    topic: &str,
    slug: &str,
    cancellation: &Cancellation,
) -> Result<Outcome, ToolboxError> {
    let learn = Learn::load(inner)?;
    match find(&inner.config, topic) {
        Ok(topic) => {
            let arguments = json!({ "topic": topic.id, "subjects": [slug] });
            learn.call(topic, arguments, cancellation)
        }
        Err(error) => Ok(Outcome::Error(error)),
    }
}

/// `learn`, for questions of the host's own: whether or not it is a tool that
/// may be called.
struct Learn<'a> {
    inner: &'a Inner,
    tool: Option<&'a kitbag_config::Tool>,
    limits: Limits,
    component: Component,
}

/// Why there is no answer that could be read.
enum Unanswered {
    /// The topic's fault.
    Error(ErrorInfo),
    /// It did not fit the output limit.
    Cut,
}

impl<'a> Learn<'a> {
    fn load(inner: &'a Inner) -> Result<Self, ToolboxError> {
        let builtin = inner.builtin(LEARN)?;
        let tool = inner.config.tools.values().find(|tool| tool.enable.value && is_learn(tool));
        let limits = tool.map(|tool| tool.limits.limits()).unwrap_or_default();
        let source = ComponentSource::Embedded(builtin.artifact);
        let component = inner.host.component(&source, metering(limits))?;
        Ok(Self { inner, tool, limits, component })
    }

    fn tool_name(&self) -> Option<&str> {
        self.tool.map(|tool| tool.name.as_str())
    }

    /// Asks for one of the views that are the host's only.
    fn ask<T: DeserializeOwned>(
        &self,
        topic: &Topic,
        view: &str,
        cancellation: &Cancellation,
    ) -> Result<Result<T, Unanswered>, ToolboxError> {
        let arguments = json!({ "topic": topic.id, VIEW_KEY: view });
        Ok(match self.call(topic, arguments, cancellation)? {
            Outcome::Success(content) => {
                serde_json::from_str(&content).map_err(|_| Unanswered::Cut)
            }
            Outcome::Error(error) => Err(Unanswered::Error(error)),
            Outcome::NeedsInput(question) => Err(Unanswered::Error(error(question.text))),
        })
    }

    fn call(
        &self,
        topic: &Topic,
        mut arguments: Value,
        cancellation: &Cancellation,
    ) -> Result<Outcome, ToolboxError> {
        let directory = match grant(self.inner, topic) {
            Ok(directory) => directory,
            Err(error) => return Ok(Outcome::Error(error)),
        };
        arguments[TOPIC_KEY] = injected(topic, self.limits.output);
        let call = Call {
            name: LEARN.into(),
            action: Action::Run,
            arguments: arguments.to_string(),
            answers: "{}".into(),
            grants: Grants { directories: vec![directory] },
            guard: Arc::default(),
            limits: self.limits,
        };
        let completion = self.inner.host.call_blocking(&self.component, &call, cancellation);
        Ok(completion.result?)
    }
}

/// The block, from its parts; each part is there only where it has entries.
fn render(learned: &[String], available: &[String], tool: Option<&str>) -> String {
    let mut text = String::new();
    if !learned.is_empty() {
        text.push_str("The following knowledge is already loaded:\n\n");
        text.push_str(&learned.join("\n\n"));
        text.push('\n');
    }
    if let (Some(tool), false) = (tool, available.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        let list = available.join("\n");
        let _ = write!(
            text,
            "The following topics are available through the `{tool}` tool:\n\n{list}\n\n\
             Some topics hold subjects that are not listed; load them by exact name when another \
             subject mentions them.\n"
        );
    }
    if text.is_empty() { text } else { format!("<knowledge>\n{text}</knowledge>\n") }
}

fn enabled(config: &Config) -> impl Iterator<Item = &Topic> {
    config.topics.values().filter(|topic| topic.enable.value)
}

/// A topic for a model: `- <id> (**<title>**): <introduction>`.
fn topic_line(topic: &Topic) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line = format!("- {}", topic.id);
    if topic.title.value != topic.id {
        let _ = write!(line, " (**{}**)", one_line(&topic.title.value));
    }
    if let Some(introduction) = &topic.introduction {
        let _ = write!(line, ": {}", one_line(&introduction.value));
    }
    line
}

/// Finds a topic by its id, or by its id or title in any case.
fn find<'a>(config: &'a Config, asked: &str) -> Result<&'a Topic, ErrorInfo> {
    let folded = asked.to_lowercase();
    let matches = |topic: &&Topic| {
        topic.id.to_lowercase() == folded || topic.title.value.to_lowercase() == folded
    };
    let exact = enabled(config).find(|topic| topic.id == asked);
    exact.or_else(|| enabled(config).find(matches)).ok_or_else(|| {
        let ids: Vec<_> = enabled(config).map(|topic| topic.id.as_str()).collect();
        let hint = match (ids.is_empty(), nearest(asked, ids.iter().copied())) {
            (true, _) => "no topics are configured".into(),
            (false, Some(near)) => {
                format!("did you mean `{}`? The topics are {}", shown(near), alternatives(&ids))
            }
            (false, None) => format!("the topics are {}", alternatives(&ids)),
        };
        error(format!("there is no topic `{}`; {hint}", shown(asked)))
    })
}

/// Grants the directory of a topic, which is looked for anew for each call.
fn grant(inner: &Inner, topic: &Topic) -> Result<DirectoryGrant, ErrorInfo> {
    let host = &topic.subjects.value;
    let refused = |why: &str| {
        let shown_path = host.strip_prefix(&inner.config.root.value).unwrap_or(host);
        let path = shown_path.to_string_lossy();
        let (id, origin) = (shown(&topic.id), &topic.subjects.origin);
        error(format!("the directory of topic `{id}` {why}: `{}` ({origin})", shown(&path)))
    };
    let located = match locate(host) {
        Ok(located) if located.is_directory() => located,
        Ok(_) => return Err(refused("does not exist")),
        Err(OpenError::Io(error)) if error.kind() != ErrorKind::PermissionDenied => {
            return Err(refused("does not exist"));
        }
        Err(error) => return Err(refused(&format!("cannot be read, since {error}"))),
    };
    if !located.links.is_empty()
        && let Some(link) = inner.guard().writable_link(&located.links)
    {
        return Err(refused(&format!(
            "is not read, since `{}` is a symbolic link in a directory that a tool may write",
            shown(&link.path.to_string_lossy()),
        )));
    }
    let guest = GuestPath::new(TOPIC_GUEST_PATH).expect("a constant in the right form");
    let identity = Some(located.id());
    Ok(DirectoryGrant { host: located.path, guest, access: Access::ReadOnly, identity })
}

/// What the guest is told about its topic.
fn injected(topic: &Topic, output: ByteSize) -> Value {
    json!({
        "id": topic.id,
        "title": topic.title.value,
        "description": topic.description.as_ref().map(|description| &description.value),
        "disabled": topic.disabled.value,
        "learned": topic.learned.value,
        "output_bytes": output.as_u64(),
    })
}

fn error(message: String) -> ErrorInfo {
    ErrorInfo { message, ..ErrorInfo::default() }
}
