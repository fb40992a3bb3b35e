//! The checked arguments of a call.
//!
//! The host checks a caller's arguments against the input schema. They are checked here again, so
//! that the tool does not depend on that check, and because the host adds an argument.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use kitbag_sdk::ErrorInfo;
use kitbag_sdk::serde_json::{self, Map, Value};
use serde::de::{Deserialize, Deserializer, Error as _};

/// Default output limit if the host sets none: 1 MiB, as everywhere.
const OUTPUT_BYTES: usize = 1 << 20;

/// Default length of an answer.
const BUDGET_BYTES: usize = 64 << 10;

/// The arguments of a call.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// The topic as the caller wrote it.
    pub(crate) topic: String,
    /// The requested subjects, as names or patterns. Empty for a listing.
    pub(crate) subjects: Vec<String>,
    /// Words by which the subjects are ranked.
    pub(crate) query: Option<String>,
    /// Length of the answer, if the caller sets it.
    max_bytes: Option<usize>,
    /// The requested view.
    pub(crate) view: View,
    /// The topic that the host resolved.
    resolved: Option<Topic>,
}

/// The requested view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// An answer to a caller.
    Call,
    /// The topic's part of the system prompt, for the host.
    Prompt,
    /// The names of the subjects, for the host.
    Names,
    /// The paths of the subjects, for the host.
    Paths,
}

/// A topic that the host resolved, with its part of the configuration.
#[derive(Debug)]
pub(crate) struct Topic {
    /// The key in the configuration.
    pub(crate) id: String,
    /// The display name. Defaults to the id.
    pub(crate) title: String,
    /// Text at the start of the listing.
    pub(crate) description: Option<String>,
    /// Names and patterns of subjects that can never be loaded.
    pub(crate) disabled: Vec<String>,
    /// Names and patterns of subjects in the system prompt.
    pub(crate) learned: Vec<String>,
    /// Patterns of dot directories that are included. The host also applies them to files that look
    /// like secrets.
    pub(crate) include: Vec<String>,
    /// Maximum length of the whole answer in bytes.
    pub(crate) output_bytes: usize,
}

impl Arguments {
    /// Returns the maximum length of an answer to a caller.
    pub(crate) fn budget(&self, topic: &Topic) -> usize {
        self.max_bytes.unwrap_or(BUDGET_BYTES).min(topic.output_bytes)
    }

    /// Returns the topic that the host resolved.
    pub(crate) fn resolved(&self) -> Result<&Topic, ErrorInfo> {
        self.resolved.as_ref().ok_or_else(|| {
            ErrorInfo::new("invalid arguments: `_topic` is missing, which the host adds")
        })
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Map::<String, Value>::deserialize(deserializer)?;
        read_arguments(object).map_err(D::Error::custom)
    }
}

fn read_arguments(object: Map<String, Value>) -> Result<Arguments, String> {
    let (mut topic, mut subjects, mut query) = (None, Vec::new(), None);
    let (mut view, mut resolved, mut max_bytes) = (View::Call, None, None);
    for (key, value) in object {
        match (key.as_str(), value) {
            ("topic", value) => topic = Some(text("topic", value)?),
            ("subjects", Value::Null) => {}
            ("subjects", Value::String(subject)) => subjects = one_or_list(subject),
            ("subjects", value @ Value::Array(_)) => subjects = texts("subjects", value)?,
            ("subjects", _) => {
                return Err("`subjects` must be a string or a list of strings".into());
            }
            ("query", Value::Null) => {}
            ("query", value) => query = Some(text("query", value)?),
            ("max_bytes", Value::Null) => {}
            ("max_bytes", value) => max_bytes = Some(bytes("max_bytes", &value)?),
            ("_topic", Value::Object(object)) => resolved = Some(read_topic(object)?),
            ("_topic", _) => return Err("`_topic` is not an object".into()),
            ("_view", Value::String(name)) if name == "prompt" => view = View::Prompt,
            ("_view", Value::String(name)) if name == "names" => view = View::Names,
            ("_view", Value::String(name)) if name == "paths" => view = View::Paths,
            ("_view", _) => return Err("`_view` is not `prompt`, `names` or `paths`".into()),
            (key, _) => {
                let known = "the arguments are `topic`, `subjects`, `query` and `max_bytes`";
                return Err(format!("`{key}` is unknown; {known}"));
            }
        }
    }
    let topic = topic.ok_or("`topic` is missing")?;
    Ok(Arguments { topic, subjects, query, max_bytes, view, resolved })
}

fn read_topic(object: Map<String, Value>) -> Result<Topic, String> {
    let (mut id, mut title, mut description) = (None, None, None);
    let (mut disabled, mut learned) = (Vec::new(), Vec::new());
    let mut include = Vec::new();
    let mut output_bytes = OUTPUT_BYTES;
    for (key, value) in object {
        match (key.as_str(), value) {
            ("id", value) => id = Some(text("_topic.id", value)?),
            (_, Value::Null) => {}
            ("title", value) => title = Some(text("_topic.title", value)?),
            ("description", value) => description = Some(text("_topic.description", value)?),
            ("disabled", value) => disabled = texts("_topic.disabled", value)?,
            ("learned", value) => learned = texts("_topic.learned", value)?,
            ("include", value) => include = texts("_topic.include", value)?,
            ("output_bytes", value) => output_bytes = bytes("_topic.output_bytes", &value)?,
            (key, _) => return Err(format!("`_topic.{key}` is unknown")),
        }
    }
    let id = id.ok_or("`_topic.id` is missing")?;
    let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| id.clone());
    let description = description.filter(|text| !text.trim().is_empty());
    Ok(Topic { id, title, description, disabled, learned, include, output_bytes })
}

/// Parses a string, or a list that some models write as a string.
fn one_or_list(text: String) -> Vec<String> {
    match text.trim_start().starts_with('[').then(|| serde_json::from_str(&text)) {
        Some(Ok(list)) => list,
        _ => vec![text],
    }
}

fn bytes(key: &str, value: &Value) -> Result<usize, String> {
    let bytes = value.as_u64().ok_or_else(|| format!("`{key}` is not a whole number"))?;
    Ok(bytes.try_into().unwrap_or(usize::MAX))
}

fn text(key: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(format!("`{key}` is not a string")),
    }
}

fn texts(key: &str, value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(values) => values
            .into_iter()
            .map(|value| text(key, value).map_err(|_| format!("`{key}` is not a list of strings")))
            .collect(),
        _ => Err(format!("`{key}` is not a list of strings")),
    }
}
