//! Knowledge for prompts, lists and resources: calls of the tool `learn`, which obey the rules of
//! that tool.

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
use crate::call::context::{CallContext, Unattended};
use crate::call::invocation::Invocation;
use crate::call::outcome::CallOutcome;
use crate::error::ToolboxError;
use crate::pipeline::edge::Nested;
use crate::registry::Toolbox;

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
    available: bool,
    unlisted: bool,
}

enum Unanswered {
    Error(ErrorInfo),
    /// It did not fit the output limit.
    Cut,
}

/// Puts the block for a system prompt together, one topic after the other.
///
/// Topics whose documents are those of a workspace that is not trusted are left out.
pub(crate) async fn prompt(
    toolbox: &Toolbox,
    context: &CallContext,
) -> Result<KnowledgePrompt, ToolboxError> {
    let (mut block, mut problems) = (KnowledgeBlock::default(), Vec::new());
    let config = toolbox.config();
    let Some(tool) = learn(config) else { return Ok(KnowledgePrompt::default()) };
    let (untrusted, trusted): (Vec<_>, Vec<_>) =
        enabled(config).partition(|topic| is_untrusted(config, topic));
    if !untrusted.is_empty() {
        problems.push(
            "the prompt omits the topics of the workspace, because the workspace is not trusted; \
             `kitbag trust` shows its requests"
                .to_owned(),
        );
    }
    let mut unread = 0;
    for topic in trusted {
        // What does not fit is not read, so that many topics cost no more than a few.
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
                if view.available {
                    block.offer(topic, view.unlisted);
                }
            }
            // The learned subjects alone exceed the limit, so the answer was
            // cut; it cannot be delivered in part.
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

/// Lists the subjects of a topic, by its id.
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

/// The entries of `learned` and `disabled` of a topic that match no subject, with the
/// nearest name. Nothing, where not all of the topic can be read.
pub(crate) async fn unmatched(
    toolbox: &Toolbox,
    topic: &Topic,
    context: &CallContext,
) -> Result<Vec<Diagnostic>, ToolboxError> {
    if topic.entries.is_empty() {
        return Ok(Vec::new());
    }
    // As it would be if nothing were disabled. No subject is shown, so this needs no approval and
    // uses up no rate.
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

/// What the files in a directory could be called as subjects, those in dot directories
/// among them: by their paths, with and without extensions and leading dots. `None` where
/// there are too many, or a directory cannot be read.
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
                // Which is no subject, and may be large.
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

/// The call that reads one subject as a model reads it, by its exact slug: one of the tool
/// `learn`, whose name comes first.
///
/// # Errors
///
/// The reason for which the call does not exist: an unknown topic, or the tool is off.
pub(crate) fn subject(
    toolbox: &Toolbox,
    topic: &str,
    slug: &str,
) -> Result<(ToolName, Invocation), ErrorInfo> {
    let config = toolbox.config();
    let tool = learn(config).ok_or_else(|| error(format!("the tool `{LEARN}` is off")))?;
    // A title in the place of the id names the topic too, in the answer by its id.
    let topic = &find(config, topic)?.id;
    // All of it: a resource is read whole, and not only a part for a model.
    let max_bytes = tool.limits.limits().output.as_u64();
    let arguments = json!({ "topic": topic, "subjects": [slug], "max_bytes": max_bytes });
    Ok((tool.name.clone(), Invocation::tool(tool.name.as_str(), arguments)))
}

/// Asks `learn` for one of the views that are the host's only.
async fn ask<T: DeserializeOwned>(
    toolbox: &Toolbox,
    topic: &str,
    view: &'static str,
    context: &CallContext,
) -> Result<Result<T, Unanswered>, ToolboxError> {
    let config = toolbox.config();
    let Some(tool) = learn(config) else {
        return Ok(Err(Unanswered::Error(error(format!("the tool `{LEARN}` is off")))));
    };
    let topic = match find(config, topic) {
        Ok(topic) => &topic.id,
        Err(error) => return Ok(Err(Unanswered::Error(error))),
    };
    let arguments = json!({ "topic": topic, VIEW_KEY: view });
    let invocation = Invocation::knowledge(tool.name.clone(), view, arguments);
    // Several topics are asked for at once, so nobody is asked about each of them.
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

/// `learn` as a model calls it, where it may.
pub(crate) fn learn(config: &Config) -> Option<&ConfiguredTool> {
    config.tools.values().find(|tool| tool.is_enabled() && is_learn(&tool.source.value))
}
