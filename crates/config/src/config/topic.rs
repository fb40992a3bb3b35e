//! The topics of the team's knowledge.

use std::path::PathBuf;

use crate::layers::origin::Sourced;

/// A topic of the team's knowledge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The id that it is asked for by.
    pub id: String,
    /// The directory of its documents; absolute. It need not exist.
    pub subjects: Sourced<PathBuf>,
    /// The directory that the documents have to lie in when they are read, by whatever links:
    /// canonical. `None`: they may lie anywhere.
    pub within: Option<PathBuf>,
    /// Whether it is offered. Default `true`.
    pub enable: Sourced<bool>,
    /// A display name; it can be asked for by that too. Default: the id.
    pub title: Sourced<String>,
    /// One line, for the system prompt.
    pub introduction: Option<Sourced<String>>,
    /// More, shown where its subjects are listed.
    pub description: Option<Sourced<String>>,
    /// Globs of the subjects that are in the system prompt already.
    pub learned: Sourced<Vec<String>>,
    /// Globs of dot directories, and of files that look like secrets, that are subjects
    /// all the same.
    pub include: Sourced<Vec<String>>,
    /// Globs or exact names of subjects that can never be loaded.
    pub disabled: Sourced<Vec<String>>,
    /// Each entry of `learned` and `disabled` with its own place, under the key of its list.
    pub entries: Vec<(&'static str, Sourced<String>)>,
}
