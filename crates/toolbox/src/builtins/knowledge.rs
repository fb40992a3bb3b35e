//! Knowledge for prompts, lists and resources. All of it is read by calls of the tool `learn`,
//! which obey the rules of that tool.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kitbag_base::text::shown;
use kitbag_config::{Config, ConfiguredTool, Diagnostic, Topic};
use kitbag_contract::{ErrorInfo, Outcome, ToolName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::builtins::knowledge_block::KnowledgeBlock;
use crate::builtins::learn::{LEARN, enabled, error, find, is_learn, is_untrusted};
use crate::builtins::skills;
use crate::call::context::{CallContext, Unattended};
use crate::call::invocation::Invocation;
use crate::call::outcome::CallOutcome;
use crate::error::ToolboxError;
use crate::pipeline::edge::Nested;
use crate::registry::Toolbox;

/// The argument with which the host requests the part of `learn` in the prompt.
const VIEW_KEY: &str = "_view";

/// The knowledge that is added to a system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnowledgePrompt {
    /// The block. Empty if there is no knowledge to add.
    pub text: String,
    /// The topics that are missing from the block, with the reason: a line for each topic.
    pub problems: Vec<String>,
}

/// The listed subjects of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Subjects {
    /// The slugs of the subjects, in order. Untrusted text.
    pub subjects: Vec<String>,
    /// The number of subjects that exceed the output limit.
    pub left_out: usize,
}

/// The answer of `learn` about one topic for the prompt.
#[derive(Deserialize)]
struct TopicView {
    /// The rendered subjects that are learned, if there are any.
    learned: Option<String>,
    available: bool,
    unlisted: bool,
}

pub(crate) enum Unanswered {
    Error(ErrorInfo),
    /// The answer exceeded the output limit.
    Cut,
}

/// Builds the block for a system prompt, one topic after the other.
///
/// Omits topics whose documents belong to an untrusted workspace.
pub(crate) async fn prompt(
    toolbox: &Toolbox,
    context: &CallContext,
) -> Result<KnowledgePrompt, ToolboxError> {
    let (mut block, mut problems) = (KnowledgeBlock::default(), Vec::new());
    let config = toolbox.config();
    let Some(tool) = learn(config) else { return Ok(KnowledgePrompt::default()) };
    let (untrusted, trusted): (Vec<_>, Vec<_>) =
        enabled(&toolbox.0).partition(|topic| is_untrusted(config, topic));
    if !untrusted.is_empty() {
        problems.push(
            "the prompt omits the topics of the workspace, because the workspace is not trusted; \
             `kitbag trust` shows its requests"
                .to_owned(),
        );
    }
    let mut unread = 0;
    for topic in trusted {
        if topic.skills.value {
            let read = skills::listed(toolbox, topic, block.skill_room(), context).await?;
            block.offer_skills(&topic.id, &read);
            problems.extend(read.problems);
            if topic.learned.value.is_empty() {
                continue;
            }
        }
        // Topics that do not fit are not read, so that many topics cost no more than a few.
        let learns = !topic.learned.value.is_empty();
        if learns && !block.has_room() {
            let _ = block.leave_out(topic);
            unread += 1;
            block.offer(topic, false);
            continue;
        }
        if !block.lists_more() {
            block.offer(topic, false);
            continue;
        }
        match ask::<TopicView>(toolbox, &topic.id, "prompt", context).await? {
            Ok(view) => {
                if let Some(documents) = view.learned {
                    problems.extend(block.learn(config, topic, &documents));
                }
                // A line names each skill instead.
                if view.available && !topic.skills.value {
                    block.offer(topic, view.unlisted);
                }
            }
            // The learned subjects alone exceed the limit, so the answer was truncated. A part of
            // it cannot be delivered.
            Err(Unanswered::Cut) => {
                problems.push(block.leave_out(topic));
                block.offer(topic, false);
            }
            Err(Unanswered::Error(error)) => problems.push(error.message),
        }
    }
    if unread > 0 {
        problems.push(format!("the prompt also omits {unread} more topics, which were not read"));
    }
    let text = block.render(Some(tool.name.as_str()));
    Ok(KnowledgePrompt { text, problems })
}

/// Lists the subjects of a topic, by the topic's id.
pub(crate) async fn subjects(
    toolbox: &Toolbox,
    topic: &str,
    context: &CallContext,
) -> Result<Result<Subjects, ErrorInfo>, ToolboxError> {
    Ok(match ask::<Subjects>(toolbox, topic, "names", context).await? {
        Ok(subjects) => Ok(subjects),
        Err(Unanswered::Error(error)) => Err(error),
        Err(Unanswered::Cut) => Ok(Subjects::default()),
    })
}

/// Returns the entries of `learned` and `disabled` of a topic that match no subject, each with the
/// nearest name. Empty if the topic cannot be read completely.
pub(crate) async fn unmatched(
    toolbox: &Toolbox,
    topic: &Topic,
    context: &CallContext,
) -> Result<Vec<Diagnostic>, ToolboxError> {
    if topic.entries.is_empty() {
        return Ok(Vec::new());
    }
    // Reads the topic as if nothing were disabled. No subject is shown, so this needs no approval
    // and uses up no rate.
    let mut config = toolbox.config().clone();
    if let Some(topic) = config.topics.get_mut(&topic.id) {
        topic.disabled.value.clear();
    }
    for tool in config.tools.values_mut().filter(|tool| is_learn(&tool.source.value)) {
        tool.rates.clear();
        tool.approve.rules.clear();
    }
    let (secrets, auditor) = (Arc::clone(&toolbox.0.secrets), toolbox.0.auditor.clone());
    let whole = Toolbox::new(toolbox.host().clone(), config, toolbox.0.builtins, secrets, auditor);
    let Ok(Subjects { subjects, left_out: 0 }) = subjects(&whole, &topic.id, context).await? else {
        return Ok(Vec::new());
    };
    let Some(files) = files(&topic.subjects.value) else { return Ok(Vec::new()) };
    Ok(topic.unmatched(&subjects, &files, &toolbox.config().tools))
}

/// Returns the possible subject names of the files in a directory, including those in dot
/// directories: their paths, with and without extensions and leading dots. `None` if there are too
/// many files or a directory cannot be read.
fn files(root: &Path) -> Option<Vec<String>> {
    const ENTRIES: usize = 100_000;
    let (mut names, mut directories, mut count) = (Vec::new(), vec![root.to_owned()], 0);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).ok()? {
            let entry = entry.ok()?;
            count += 1;
            if count > ENTRIES {
                return None;
            }
            let path = entry.path();
            if entry.file_type().ok()?.is_dir() {
                // `.git` contains no subjects and may be large.
                if entry.file_name() != ".git" {
                    directories.push(path);
                }
                continue;
            }
            let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
            let plain: Vec<_> = name.split('/').map(|part| part.trim_start_matches('.')).collect();
            let plain = plain.join("/");
            for name in [name, &*plain] {
                names.push(Path::new(name).with_extension("").to_string_lossy().into_owned());
                names.push(name.to_owned());
            }
        }
    }
    Some(names)
}

/// Returns the tool `learn` and the call that reads one subject, by its exact slug, as a model
/// reads it.
///
/// # Errors
///
/// The reason why the call does not exist: the topic is unknown, or the tool is off.
pub(crate) fn subject(
    toolbox: &Toolbox,
    topic: &str,
    slug: &str,
) -> Result<(ToolName, Invocation), ErrorInfo> {
    let config = toolbox.config();
    let tool = learn(config).ok_or_else(|| error(format!("the tool `{LEARN}` is off")))?;
    // A title in place of the id also names the topic. The answer uses the id.
    let topic = &find(&toolbox.0, topic)?.id;
    // A resource is read completely, not only the part that a model reads.
    let max_bytes = tool.limits.limits().output.as_u64();
    let arguments = json!({ "topic": topic, "subjects": [slug], "max_bytes": max_bytes });
    Ok((tool.name.clone(), Invocation::tool(tool.name.as_str(), arguments)))
}

/// Requests one of the views of `learn` that only the host can request.
pub(crate) async fn ask<T: DeserializeOwned>(
    toolbox: &Toolbox,
    topic: &str,
    view: &'static str,
    context: &CallContext,
) -> Result<Result<T, Unanswered>, ToolboxError> {
    let config = toolbox.config();
    let Some(tool) = learn(config) else {
        return Ok(Err(Unanswered::Error(error(format!("the tool `{LEARN}` is off")))));
    };
    let topic = match find(&toolbox.0, topic) {
        Ok(topic) => &topic.id,
        Err(error) => return Ok(Err(Unanswered::Error(error))),
    };
    let arguments = json!({ "topic": topic, VIEW_KEY: view });
    let invocation = Invocation::knowledge(tool.name.clone(), view, arguments);
    // Several topics are requested at once, so no person is asked about each of them.
    let ended = toolbox.drive(&Nested, invocation, context.clone(), &mut Unattended).await;
    let ended = match ended {
        Ok(ended) => ended,
        Err(refused @ (ToolboxError::NotApproved { .. } | ToolboxError::Rate { .. })) => {
            let message = refused.message_for(context.audience, None);
            return Ok(Err(Unanswered::Error(error(format!(
                "topic `{}`: {message}",
                shown(topic)
            )))));
        }
        Err(error) => return Err(error),
    };
    let Ok(completion) = CallOutcome::completion(ended);
    Ok(match completion.result? {
        Outcome::Success(content) => serde_json::from_str(&content).map_err(|_| Unanswered::Cut),
        Outcome::Error(error) => Err(Unanswered::Error(error)),
        Outcome::NeedsInput(question) => Err(Unanswered::Error(error(question.text))),
    })
}

/// Returns `learn` in the form that a model calls, if it may.
pub(crate) fn learn(config: &Config) -> Option<&ConfiguredTool> {
    config.tools.values().find(|tool| tool.is_enabled() && is_learn(&tool.source.value))
}
