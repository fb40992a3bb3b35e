//! The screen that a person reads before they consent: to a workspace, to a tool that is added or
//! updated, to a call.
//!
//! [`Consent`] is plain data, and its text a pure function of that. The text is at most one screen
//! long: long material first, then the risks, worst first, and last, next to the prompt, a summary
//! with counts. Text that others wrote is escaped, bounded and behind a bar, so that it cannot pass
//! for a line of kitbag's own.

mod grants;
mod imitation;
mod render;
mod risk;
mod summary;

pub use grants::{Surroundings, grant_items, kind_items, place, request_item};
pub use imitation::imitated;
pub use render::{ScreenSize, cut_barred};
pub use risk::{Risk, Severity};

use kitbag_base::text::shown;

/// A request for consent, as a person reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// The first line: who asks for what.
    pub heading: String,
    /// Long material, which is shown first and cut first.
    pub parts: Vec<Attachment>,
    /// Everything that is requested.
    pub items: Vec<RequestItem>,
    /// The command that shows everything, such as `` `kitbag trust --all` ``.
    pub more: String,
}

/// Long material: descriptions, notes, files, differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// Its title, which ends in a colon.
    pub title: String,
    /// The lines that fit on a screen, if there is room.
    pub short: Vec<String>,
    /// The lines that are shown on request. Empty: the same.
    pub full: Vec<String>,
    /// Whether the lines are text of others.
    pub is_theirs: bool,
}

/// One thing that is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestItem {
    /// Who requests it.
    pub requester: Requester,
    /// How it differs from what a person consented to before.
    pub change: RequestChange,
    /// The request in a line that can be understood by itself. Escaped.
    pub line: String,
    /// The abilities that it gives, for the counts of the summary.
    pub abilities: Vec<Ability>,
    /// The risks that it carries.
    pub risks: Vec<Risk>,
}

/// The part of a workspace that requests something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requester {
    /// A tool, by its name.
    Tool(String),
    /// A topic, by its id.
    Topic(String),
    /// The workspace as a whole.
    Workspace,
}

/// How a request differs from what a person consented to before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestChange {
    /// It is new.
    Added,
    /// A restriction of it is gone or weaker.
    Loosened,
    /// It is no longer requested.
    Removed,
    /// It is as it was, or nothing was consented to before.
    #[default]
    Same,
}

/// An ability that a request gives, in the order in which the summary counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// It sends secrets with requests.
    Secrets,
    /// It sends requests over the network.
    Network,
    /// It changes files outside the workspace.
    WriteOutside,
    /// It reads files outside the workspace.
    ReadOutside,
    /// It changes files in the workspace.
    WriteInside,
    /// It reads files in the workspace.
    ReadInside,
    /// It sees variables of the environment.
    Variables,
    /// It calls other tools.
    CallTools,
}

impl RequestItem {
    /// A request that gives nothing by itself and carries no risk.
    pub fn new(requester: Requester, line: impl Into<String>) -> Self {
        let change = RequestChange::default();
        Self { requester, change, line: line.into(), abilities: Vec::new(), risks: Vec::new() }
    }

    /// The same request with an ability.
    #[must_use]
    pub fn with_ability(mut self, ability: Ability) -> Self {
        self.abilities.push(ability);
        self
    }

    /// The same request with a risk.
    #[must_use]
    pub fn with_risk(mut self, risk: Risk) -> Self {
        self.risks.push(risk);
        self
    }

    /// The same request, changed like this.
    #[must_use]
    pub fn changed(mut self, change: RequestChange) -> Self {
        self.change = change;
        self
    }

    /// The worst of its risks.
    pub fn worst(&self) -> Option<Risk> {
        self.risks.iter().min().copied()
    }
}

impl Attachment {
    /// Lines of kitbag's own.
    pub fn ours(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self { title: title.into(), short: lines, full: Vec::new(), is_theirs: false }
    }

    /// Lines that others wrote.
    pub fn theirs(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self { is_theirs: true, ..Self::ours(title, lines) }
    }
}

impl Requester {
    /// Its name in the summary. Ids of topics are free text, which is not shown next to a question.
    fn name(&self) -> String {
        match self {
            Self::Tool(name) => quoted(name),
            Self::Topic(_) => "a topic".to_owned(),
            Self::Workspace => "the workspace".to_owned(),
        }
    }
}

/// A text of others in code quotes, which it cannot end.
pub fn quoted(text: &str) -> String {
    format!("`{}`", shown(text).to_string().replace('`', "\\u{60}"))
}
