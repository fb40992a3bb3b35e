//! The handling of answers before a model reads them.

use kitbag_policy::screening::Severity;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::layers::origin::Sourced;

/// The handling of answers before a model reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// `true` encloses answers of tools that reach the network or run third-party code in marks.
    /// Default: `false`.
    pub fence: Sourced<bool>,
    /// The handling of answers that look like instructions to a model. `None`: answers are not
    /// screened.
    pub screen: Option<Screening>,
}

/// The handling of answers that look like instructions to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screening {
    /// The action for each severity.
    pub actions: [(Severity, Sourced<ScreenAction>); 3],
    /// The names of rules to skip.
    pub except: Vec<String>,
}

/// The action for an answer that looks like instructions to a model, in increasing order of
/// strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ScreenAction {
    /// Do nothing.
    Pass,
    /// Name the findings to the client.
    Mark,
    /// Name the findings, and enclose the text in marks.
    Fence,
    /// Replace the answer with the names of the findings.
    Block,
}

impl Screening {
    /// Returns the action for findings of this severity.
    pub fn action(&self, severity: Severity) -> ScreenAction {
        let found = self.actions.iter().find(|(of, _)| *of == severity);
        found.map_or(ScreenAction::Pass, |(_, action)| action.value)
    }
}

impl ScreenAction {
    /// Returns the value as it is written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Mark => "mark",
            Self::Fence => "fence",
            Self::Block => "block",
        }
    }
}
