//! The screen that a person reads before they consent to a workspace, to a tool that is added or
//! updated, or to a call.
//!
//! [`Consent`] is plain data, and its text is a pure function of that data. The text is at most one
//! screen long. Long material comes first, then the risks from worst to least, and a summary with
//! counts comes last, next to the prompt. Third-party text is escaped, bounded and behind a bar, so
//! that it cannot pass for a line of kitbag's own.

mod grants;
mod imitation;
mod render;
mod servers;
mod summary;

pub use grants::{grant_items, kind_items, request_item, surroundings};
pub use imitation::imitated;
pub use kitbag_policy::consent::{Ability, Risk, Severity, Surroundings, place, quoted};
pub use render::{ScreenSize, cut_barred};
pub use servers::{definition_items, hidden_characters, imitation_items, server_items};

/// A request for consent, for a person to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// The first line, which names the requester and the request.
    pub heading: String,
    /// Long material, which is shown first and truncated first.
    pub parts: Vec<Attachment>,
    /// All requests.
    pub items: Vec<RequestItem>,
    /// The command that shows everything, such as `` `kitbag trust --all` ``.
    pub more: String,
}

/// Long material: descriptions, notes, files and differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The title, which ends in a colon.
    pub title: String,
    /// The lines for a screen, if there is room.
    pub short: Vec<String>,
    /// The lines that are shown on request. Empty: the same as `short`.
    pub full: Vec<String>,
    /// True if the lines are third-party text.
    pub is_theirs: bool,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestItem {
    /// The requester.
    pub requester: Requester,
    /// The difference from the request that a person consented to before.
    pub change: RequestChange,
    /// The request in one line that can be understood alone. Escaped.
    pub line: String,
    /// The abilities that the request gives, for the counts of the summary.
    pub abilities: Vec<Ability>,
    /// The risks of the request.
    pub risks: Vec<Risk>,
}

/// The part of a workspace that requests something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requester {
    /// A tool, by its name.
    Tool(String),
    /// An MCP server, by its name.
    Server(String),
    /// A topic, by its id.
    Topic(String),
    /// The workspace as a whole.
    Workspace,
}

/// The difference between a request and the one that a person consented to before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestChange {
    /// The request is new.
    Added,
    /// A restriction of the request was removed or is weaker.
    Loosened,
    /// The request is no longer made.
    Removed,
    /// The request is unchanged, or no request was consented to before.
    #[default]
    Same,
}

impl RequestItem {
    /// Creates a request without abilities and risks.
    pub fn new(requester: Requester, line: impl Into<String>) -> Self {
        let change = RequestChange::default();
        Self { requester, change, line: line.into(), abilities: Vec::new(), risks: Vec::new() }
    }

    /// Adds an ability to the request.
    #[must_use]
    pub fn with_ability(mut self, ability: Ability) -> Self {
        self.abilities.push(ability);
        self
    }

    /// Adds a risk to the request.
    #[must_use]
    pub fn with_risk(mut self, risk: Risk) -> Self {
        self.risks.push(risk);
        self
    }

    /// Sets the change of the request.
    #[must_use]
    pub fn changed(mut self, change: RequestChange) -> Self {
        self.change = change;
        self
    }

    /// Returns the worst risk of the request.
    pub fn worst(&self) -> Option<Risk> {
        self.risks.iter().min().copied()
    }
}

impl Attachment {
    /// Creates an attachment with lines of kitbag's own.
    pub fn ours(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self { title: title.into(), short: lines, full: Vec::new(), is_theirs: false }
    }

    /// Creates an attachment with third-party lines.
    pub fn theirs(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self { is_theirs: true, ..Self::ours(title, lines) }
    }
}

impl Requester {
    /// Returns the requester's name in the summary. Topic ids are free text, which is not shown
    /// next to a question.
    fn name(&self) -> String {
        match self {
            Self::Tool(name) | Self::Server(name) => quoted(name),
            Self::Topic(_) => "a topic".to_owned(),
            Self::Workspace => "the workspace".to_owned(),
        }
    }
}
