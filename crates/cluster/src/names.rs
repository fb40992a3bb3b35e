//! The names of subjects, streams and buckets.
//!
//! Permissions of NATS are granted by subject, so every subject that only one side may publish has
//! a prefix of its own.

use std::fmt;
use std::str::FromStr;

use kitbag_base::text::shown;
use kitbag_contract::ToolName;
use serde::{Deserialize, Serialize};

/// The longest name of a workspace or a root, in bytes.
pub const WORKSPACE_NAME_BYTES: usize = 32;

/// The longest id of a call, in bytes.
const CALL_ID_BYTES: usize = 64;

/// The names of one workspace on NATS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    workspace: String,
}

/// The directory that a call needs on its worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The call needs no directory of a worker.
    #[default]
    Any,
    /// The call needs the root with this name.
    Named(String),
}

/// The priority of a call. Workers take calls of a higher priority first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// A person waits for the call.
    High,
    /// Calls of agents.
    #[default]
    Normal,
    /// Calls that may wait.
    Low,
}

/// The id of a call, which is also the name under which its answer can be requested again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallId(String);

/// The error for a string that is not a valid name on NATS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a valid {what}: it takes {characters}, and at most {max} characters",
    shown(name)
)]
pub struct NameError {
    /// The invalid name.
    pub name: String,
    what: &'static str,
    characters: &'static str,
    max: usize,
}

impl Names {
    /// Returns the names of the workspace with this name.
    ///
    /// # Errors
    ///
    /// [`NameError`] unless the name has 1 to 32 lower-case letters, digits and `-`.
    pub fn new(workspace: &str) -> Result<Self, NameError> {
        check_name(workspace, "name of a workspace")?;
        Ok(Self { workspace: workspace.to_owned() })
    }

    /// Returns the name of the workspace.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Returns the name of the stream of calls.
    pub fn call_stream(&self) -> String {
        format!("kitbag-calls-{}", self.workspace)
    }

    /// Returns the name of the bucket with the records of calls.
    pub fn record_bucket(&self) -> String {
        format!("kitbag-records-{}", self.workspace)
    }

    /// Returns the name of the object store with arguments and answers that are too long for a
    /// message.
    pub fn body_store(&self) -> String {
        format!("kitbag-bodies-{}", self.workspace)
    }

    /// Returns the subject of every call.
    pub fn every_call(&self) -> String {
        format!("kitbag.call.{}.>", self.workspace)
    }

    /// Returns the subject of a call.
    pub fn call(&self, root: &Root, priority: Priority, tool: &ToolName) -> String {
        format!("kitbag.call.{}.{root}.{priority}.{tool}", self.workspace)
    }

    /// Returns the subject of all calls that need this root and have this priority. Each of these
    /// subjects has one consumer.
    pub fn calls_of(&self, root: &Root, priority: Priority) -> String {
        format!("kitbag.call.{}.{root}.{priority}.*", self.workspace)
    }

    /// Returns the name of the consumer of [`calls_of`](Self::calls_of).
    pub fn consumer(&self, root: &Root, priority: Priority) -> String {
        format!("{root}-{priority}")
    }

    /// Returns the subject of the replies to one run of a call. `front_end` is the key of the front
    /// end and the id of its process, joined by a dot.
    pub fn reply(&self, front_end: &str, call: &CallId, round: u32) -> String {
        format!("kitbag.reply.{front_end}.{call}.{round}")
    }

    /// Returns the subject of the replies to a front end.
    pub fn every_reply(&self, front_end: &str) -> String {
        format!("kitbag.reply.{front_end}.*.*")
    }

    /// Returns the subject of the cancellation of a call.
    pub fn cancellation(&self, call: &CallId) -> String {
        format!("kitbag.cancel.{}.{call}", self.workspace)
    }

    /// Returns the subject of every cancellation.
    pub fn every_cancellation(&self) -> String {
        format!("kitbag.cancel.{}.*", self.workspace)
    }
}

impl Root {
    /// Returns the root with this name.
    ///
    /// # Errors
    ///
    /// [`NameError`] unless the name has 1 to 32 lower-case letters, digits and `-`.
    pub fn named(name: &str) -> Result<Self, NameError> {
        check_name(name, "name of a root")?;
        Ok(Self::Named(name.to_owned()))
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Named(name) => write!(f, "root-{name}"),
        }
    }
}

impl Priority {
    /// All priorities, the highest first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        })
    }
}

impl CallId {
    /// Returns the id, if it can be part of a subject.
    ///
    /// # Errors
    ///
    /// [`NameError`] unless the id has 1 to 64 ASCII letters, digits, `-` and `_`.
    pub fn new(id: impl Into<String>) -> Result<Self, NameError> {
        let id = id.into();
        let is_valid = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if id.is_empty() || id.len() > CALL_ID_BYTES || !id.bytes().all(is_valid) {
            let characters = "letters, digits, `-` and `_`";
            return Err(NameError {
                name: id,
                what: "id of a call",
                characters,
                max: CALL_ID_BYTES,
            });
        }
        Ok(Self(id))
    }

    /// Returns a new random id.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the key of the record of one run of the call.
    pub(crate) fn record_key(&self, round: u32) -> String {
        format!("{self}.{round}")
    }

    /// Returns the id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CallId {
    type Err = NameError;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        Self::new(id)
    }
}

impl TryFrom<String> for CallId {
    type Error = NameError;

    fn try_from(id: String) -> Result<Self, Self::Error> {
        Self::new(id)
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> Self {
        id.0
    }
}

fn check_name(name: &str, what: &'static str) -> Result<(), NameError> {
    let is_valid = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !name.is_empty() && name.len() <= WORKSPACE_NAME_BYTES && name.bytes().all(is_valid) {
        return Ok(());
    }
    let characters = "lower-case letters, digits and `-`";
    Err(NameError { name: name.to_owned(), what, characters, max: WORKSPACE_NAME_BYTES })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_no_wildcards_or_separators() {
        for name in ["", "a.b", "*", ">", "A", "a b", "ä", &"a".repeat(33)] {
            assert!(Names::new(name).is_err(), "{name}");
            assert!(Root::named(name).is_err(), "{name}");
        }
        for id in ["", "a.b", "*", ">", "a b", &"a".repeat(65)] {
            assert!(CallId::new(id).is_err(), "{id}");
        }
    }

    #[test]
    fn a_root_named_any_is_not_any_root() {
        let names = Names::new("team").unwrap();
        let tool = ToolName::new("files").unwrap();
        let named = Root::named("any").unwrap();
        assert_eq!(
            names.call(&named, Priority::High, &tool),
            "kitbag.call.team.root-any.high.files"
        );
        assert_eq!(names.calls_of(&Root::Any, Priority::Low), "kitbag.call.team.any.low.*");
        assert_eq!(names.consumer(&Root::Any, Priority::Low), "any-low");
    }

    #[test]
    fn random_ids_are_valid_and_differ() {
        let (one, other) = (CallId::random().unwrap(), CallId::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(CallId::new(one.as_str()), Ok(one.clone()));
        assert_eq!(one.as_str().len(), 32);
    }
}
