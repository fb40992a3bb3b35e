//! The topics of the team's knowledge.

use std::path::PathBuf;

use crate::layers::origin::Sourced;

/// The id of the topic of the skills in `.kitbag/skills`.
pub const WORKSPACE_SKILLS: &str = "workspace-skills";

/// The id of the topic of the skills in the directory `skills` beside the user config.
pub const USER_SKILLS: &str = "user-skills";

/// A topic of the team's knowledge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The id.
    pub id: String,
    /// The directory of the documents; absolute. It need not exist.
    pub subjects: Sourced<PathBuf>,
    /// The directory that must contain the documents when they are read, also through links;
    /// canonical. `None`: no restriction.
    pub within: Option<PathBuf>,
    /// `true` offers the topic. Default `true`.
    pub enable: Sourced<bool>,
    /// A display name, which also selects the topic. Default: the id.
    pub title: Sourced<String>,
    /// One line, for the system prompt.
    pub introduction: Option<Sourced<String>>,
    /// A longer description, shown with the list of subjects.
    pub description: Option<Sourced<String>>,
    /// `true` for a directory of skills: each directory in it with a file `SKILL.md` is a skill.
    /// Default `false`, but `true` for [`WORKSPACE_SKILLS`] and [`USER_SKILLS`].
    pub skills: Sourced<bool>,
    /// Globs of the subjects that are part of the system prompt.
    pub learned: Sourced<Vec<String>>,
    /// Globs of dot directories and of files that look like secrets. Matching paths are subjects.
    pub include: Sourced<Vec<String>>,
    /// Globs or exact names of subjects that can never be loaded.
    pub disabled: Sourced<Vec<String>>,
    /// Each entry of `learned` and `disabled` with its own place, under the key of its list.
    pub entries: Vec<(&'static str, Sourced<String>)>,
}

impl Topic {
    /// A directory of skills with the default settings.
    #[must_use]
    pub fn of_skills(id: String, subjects: Sourced<PathBuf>) -> Self {
        Self {
            subjects,
            within: None,
            enable: Sourced::default(true),
            title: Sourced::default(id.clone()),
            introduction: None,
            description: None,
            skills: Sourced::default(true),
            learned: Sourced::default(Vec::new()),
            include: Sourced::default(Vec::new()),
            disabled: Sourced::default(Vec::new()),
            entries: Vec::new(),
            id,
        }
    }
}
