//! The host's part of `learn`: it resolves the topic of a call and the directory of that topic. The
//! guest does everything else with documents.

use std::fmt::Write as _;
use std::io::ErrorKind;

use kitbag_base::ByteSize;
use kitbag_base::text::{alternatives, nearest, shown};
use kitbag_config::{Config, ConfiguredTool, ToolSource, Topic};
use kitbag_contract::{ErrorInfo, Limits};
use kitbag_fs_guard::{OpenError, canonical, locate};
use kitbag_policy::{Access, DirectoryGrant, GuestPath};
use serde_json::{Map, Value};

use crate::builtins::adapter::{Adapter, AdapterRefusal, Additions};
use crate::registry::ToolboxState;

/// The guest path of the documents of a topic.
pub const TOPIC_GUEST_PATH: &str = "/subjects";

/// The built-in tool that reads knowledge.
pub(crate) const LEARN: &str = "learn";

/// The maximum number of topics in the description of `learn`.
const DESCRIBED_TOPICS: usize = 100;

/// The argument with which the host passes the topic to `learn`.
const TOPIC_KEY: &str = "_topic";

pub(crate) struct Learn;

impl Adapter for Learn {
    fn describe(&self, state: &ToolboxState, _: &ConfiguredTool, description: &mut String) {
        let config = &state.config;
        let mut topics = enabled(state);
        let line = |topic: &Topic| match is_untrusted(config, topic) {
            // Other text of the workspace would look like text of kitbag.
            true => format!("- {}", topic.id),
            false => topic_line(topic),
        };
        let lines: Vec<_> = topics.by_ref().take(DESCRIBED_TOPICS).map(line).collect();
        match lines.is_empty() {
            true => description.push_str("\n\nNo topics are configured."),
            false => {
                let _ = write!(description, "\n\nTopics:\n{}", lines.join("\n"));
            }
        }
        match topics.count() {
            0 => {}
            more => {
                let _ = write!(description, "\n… and {more} more");
            }
        }
    }

    fn own_arguments(&self) -> &'static [&'static str] {
        &[TOPIC_KEY]
    }

    fn prepare(
        &self,
        state: &ToolboxState,
        arguments: &Map<String, Value>,
        limits: &Limits,
    ) -> Result<Additions, AdapterRefusal> {
        let asked = arguments.get("topic").and_then(Value::as_str).unwrap_or_default();
        let refused = |reason| move |answer| AdapterRefusal { reason, answer };
        let topic = find(state, asked).map_err(refused("arguments"))?;
        let directories = vec![grant(state, topic).map_err(refused("topic"))?];
        let topic = injected(topic, limits.output);
        Ok(Additions { directories, arguments: Map::from_iter([(TOPIC_KEY.to_owned(), topic)]) })
    }
}

/// Returns true if a tool is `learn`, under any name.
pub(crate) fn is_learn(source: &ToolSource) -> bool {
    matches!(source, ToolSource::Builtin { name } if name.value == LEARN)
}

/// Returns every enabled topic, or the problem with it.
pub(crate) fn topics(state: &ToolboxState) -> impl Iterator<Item = Result<&Topic, ErrorInfo>> {
    enabled(state).map(|topic| grant(state, topic).map(|_| topic))
}

/// Returns the enabled topics of the configuration, and those of the skills in components.
pub(crate) fn enabled(state: &ToolboxState) -> impl Iterator<Item = &Topic> {
    configured(&state.config).chain(state.component_skills().topics.values())
}

fn configured(config: &Config) -> impl Iterator<Item = &Topic> {
    config.topics.values().filter(|topic| topic.enable.value)
}

/// Returns true if the documents of a topic belong to an untrusted workspace.
pub(crate) fn is_untrusted(config: &Config, topic: &Topic) -> bool {
    let is_inside = || {
        let root = canonical(&config.root.value);
        canonical(&topic.subjects.value).starts_with(root)
    };
    config.workspace_trust.untrusted().is_some()
        && (config.is_of_workspace(&topic.subjects.origin) || is_inside())
}

/// Returns the line of a topic for a model: `- <id> (**<title>**): <introduction>`, each part
/// truncated.
pub(crate) fn topic_line(topic: &Topic) -> String {
    let one_line = |text: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        shown(&line).to_string()
    };
    let mut line = format!("- {}", topic.id);
    if topic.title.value != topic.id {
        let _ = write!(line, " (**{}**)", one_line(&topic.title.value));
    }
    if let Some(introduction) = &topic.introduction {
        let _ = write!(line, ": {}", one_line(&introduction.value));
    }
    line
}

/// Finds a topic by its id, or by its id or title ignoring case.
pub(crate) fn find<'a>(state: &'a ToolboxState, asked: &str) -> Result<&'a Topic, ErrorInfo> {
    // A call that names a configured topic reads no components.
    if let Some(topic) = configured(&state.config).find(|topic| topic.id == asked) {
        return Ok(topic);
    }
    let folded = asked.to_lowercase();
    let matches = |topic: &&Topic| {
        topic.id.to_lowercase() == folded || topic.title.value.to_lowercase() == folded
    };
    let exact = enabled(state).find(|topic| topic.id == asked);
    exact.or_else(|| enabled(state).find(matches)).ok_or_else(|| {
        let ids: Vec<_> = enabled(state).map(|topic| topic.id.as_str()).collect();
        let hint = match (ids.is_empty(), nearest(asked, ids.iter().copied())) {
            (true, _) => {
                "no topics are configured; to add one, set `subjects = \"DIRECTORY\"` under \
                 `[knowledge.NAME]` in `.kitbag/config.toml`"
                    .into()
            }
            (false, Some(near)) => {
                format!("did you mean `{}`? The topics are {}", shown(near), alternatives(&ids))
            }
            (false, None) => format!("the topics are {}", alternatives(&ids)),
        };
        match state.config.topic_off(asked) {
            Some(reason) => error(format!("the topic `{}` is {reason}", shown(asked))),
            None => error(format!("there is no topic `{}`; {hint}", shown(asked))),
        }
    })
}

/// Grants the directory of a topic, which is resolved again for each call.
pub(crate) fn grant(state: &ToolboxState, topic: &Topic) -> Result<DirectoryGrant, ErrorInfo> {
    let host = &topic.subjects.value;
    let refused = |why: &str| {
        let shown_path = host.strip_prefix(&state.config.root.value).unwrap_or(host);
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
        Err(error) => return Err(refused(&format!("cannot be read: {error}"))),
    };
    if let Some(within) = &topic.within
        && !located.path.starts_with(within)
    {
        return Err(refused(&format!(
            "is not read, because it leads to `{}`, which is not trusted",
            shown(&located.path.to_string_lossy()),
        )));
    }
    if !located.links.is_empty()
        && let Some(link) = state.guard().writable_link(&located.links)
    {
        return Err(refused(&format!(
            "is not read, because `{}` is a symbolic link in a directory that a tool may write",
            shown(&link.path.to_string_lossy()),
        )));
    }
    if !located.links.is_empty()
        && let Err(error) = state.owners().check_links(&located.links)
    {
        return Err(refused(&format!("is not read: {error}")));
    }
    let guest = GuestPath::new(TOPIC_GUEST_PATH).expect("a constant in the right form");
    let identity = Some(located.id());
    let include = topic.include.value.clone();
    Ok(DirectoryGrant {
        host: located.path,
        guest,
        access: Access::ReadOnly,
        include,
        protected: None,
        identity,
    })
}

/// Returns the description of a topic for the guest, without empty parts, because it is written and
/// read in each call.
fn injected(topic: &Topic, output: ByteSize) -> Value {
    let mut injected = Map::new();
    injected.insert("id".to_owned(), topic.id.as_str().into());
    if topic.title.value != topic.id {
        injected.insert("title".to_owned(), topic.title.value.as_str().into());
    }
    if let Some(description) = &topic.description {
        injected.insert("description".to_owned(), description.value.as_str().into());
    }
    let lists =
        [("disabled", &topic.disabled), ("learned", &topic.learned), ("include", &topic.include)];
    for (key, globs) in lists {
        if !globs.value.is_empty() {
            injected.insert(key.to_owned(), globs.value.as_slice().into());
        }
    }
    injected.insert("output_bytes".to_owned(), output.as_u64().into());
    injected.into()
}

pub(crate) fn error(message: String) -> ErrorInfo {
    ErrorInfo { message, ..ErrorInfo::default() }
}
