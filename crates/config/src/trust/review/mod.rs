//! Edits of a workspace since a person trusted it.
//!
//! Trust covers the requests of the trusted files, together with their restrictions. After an edit,
//! the trusted files are resolved again, under the same user config and on the same file system as
//! the edited files, and the two results are compared. Thus neither the formatting of a file nor a
//! change of the user config is an edit. [`compare`] finds the requests of the edited files beyond
//! the trusted ones; [`apply`] turns those off and leaves everything else unchanged.

mod apply;
mod compare;
mod server;
mod tool;

use std::fmt;

use kitbag_base::text::shown;
use kitbag_contract::ToolName;
use kitbag_policy::server::ServerName;
use kitbag_state::trust::WorkspaceEdit;

use crate::config::{Config, DIRECTORY, FILE};
use crate::trust::workspace::COMMAND;

/// The edits of a workspace since a person trusted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustReview {
    /// The files that differ from the trusted files.
    pub files: Vec<WorkspaceEdit>,
    /// The differences between the present and the trusted requests and restrictions.
    pub changes: TrustChanges,
    /// The tools and topics that are off until a person reviews the edits, each with its cause.
    pub off: Vec<(TrustSubject, String)>,
}

/// The differences between the present requests and restrictions of a workspace and those that a
/// person trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustChanges {
    /// Requests that were not trusted.
    pub added: Vec<TrustChange>,
    /// Trusted requests that the workspace no longer makes.
    pub removed: Vec<TrustChange>,
    /// Trusted restrictions that are weaker or gone.
    pub loosened: Vec<TrustChange>,
}

/// One request or restriction that changed.
///
/// Reads as ``tool `fetch`: GET, HEAD  https://docs.rs/**``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustChange {
    /// The tool or topic that it belongs to.
    pub subject: TrustSubject,
    /// The request or restriction, in words.
    pub text: String,
}

/// The part of a workspace that a request or restriction belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustSubject {
    /// A tool.
    Tool(ToolName),
    /// A topic, by its id.
    Topic(String),
    /// An MCP server.
    Server(ServerName),
    /// A setting of the whole workspace.
    Workspace,
}

impl TrustChanges {
    /// Returns whether the workspace requests nothing beyond its trusted requests.
    pub fn is_within(&self) -> bool {
        self.added.is_empty() && self.loosened.is_empty()
    }

    fn grows(&self, subject: &TrustSubject) -> bool {
        self.added.iter().chain(&self.loosened).any(|change| change.subject == *subject)
    }
}

impl TrustReview {
    /// Returns the edit that most likely explains why a tool or topic is off. `own` are the paths
    /// of the tool's own files in the workspace.
    fn cause(&self, own: &[String]) -> String {
        let config = format!("{DIRECTORY}/{FILE}");
        let is_own = |change: &&WorkspaceEdit| own.iter().any(|own| change.path() == Some(own));
        // A tool that exists has not lost its component.
        let is_left = |change: &&WorkspaceEdit| match change {
            WorkspaceEdit::Removed(path) => !path.ends_with(".wasm"),
            _ => true,
        };
        let edits = || self.files.iter().filter(is_left);
        let edit = edits()
            .find(is_own)
            .or_else(|| edits().find(|change| change.path() == Some(&config)))
            .or_else(|| edits().next())
            .or(self.files.first());
        edit.unwrap_or(&WorkspaceEdit::Places).to_string()
    }

    /// Returns the sentence for a person: the tools and topics that are off, the restrictions that
    /// are kept, and the reason. `None`: the workspace requests nothing beyond its trusted
    /// requests.
    pub fn notice(&self) -> Option<String> {
        let mut causes: Vec<(&str, Vec<String>)> = Vec::new();
        for (subject, cause) in &self.off {
            let name = subject.to_string();
            match causes.iter_mut().find(|(other, _)| other == cause) {
                Some((_, names)) => names.push(name),
                None => causes.push((cause, vec![name])),
            }
        }
        let mut sentences: Vec<_> = causes
            .into_iter()
            .map(|(cause, names)| format!("{} off because {cause}", listed(&names)))
            .collect();
        if self.changes.grows(&TrustSubject::Workspace) {
            let cause = self.cause(&[]);
            sentences.push(format!(
                "the limits and restrictions that you trusted are kept because {cause}"
            ));
        }
        (!sentences.is_empty()).then(|| format!("{}; run `{COMMAND}`", sentences.join("; ")))
    }
}

/// Returns names with their verb, cut to a readable number.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names {
        [one] => format!("{one} is"),
        [names @ .., last] if names.len() < SHOWN => {
            format!("{} and {last} are", names.join(", "))
        }
        names => {
            let more = names.len() - SHOWN;
            format!("{} and {more} more are", names[..SHOWN].join(", "))
        }
    }
}

impl Config {
    /// Returns the sentence for a person about trust in the workspace, if some of its settings do
    /// not take effect.
    pub fn trust_notice(&self) -> Option<String> {
        let untrusted = self.workspace_trust.notice().map(ToString::to_string);
        untrusted.or_else(|| self.review.as_ref()?.notice())
    }

    /// Returns the reason why a topic is off until a person reviews the edits of the workspace.
    pub fn topic_off(&self, id: &str) -> Option<String> {
        let (_, cause) =
            self.review.as_ref()?.off.iter().find(
                |(subject, _)| matches!(subject, TrustSubject::Topic(topic) if topic == id),
            )?;
        Some(format!("off because {cause}; run `{COMMAND}`"))
    }
}

impl fmt::Display for TrustSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => write!(f, "`{name}`"),
            Self::Topic(id) => write!(f, "topic `{}`", shown(id)),
            Self::Server(name) => write!(f, "server `{name}`"),
            Self::Workspace => f.write_str("the workspace"),
        }
    }
}

impl fmt::Display for TrustChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = shown(&self.text);
        match &self.subject {
            TrustSubject::Tool(name) => write!(f, "tool `{name}`: {text}"),
            TrustSubject::Topic(id) => write!(f, "topic `{}`: {text}", shown(id)),
            TrustSubject::Server(name) => write!(f, "server `{name}`: {text}"),
            TrustSubject::Workspace => write!(f, "{text}"),
        }
    }
}
