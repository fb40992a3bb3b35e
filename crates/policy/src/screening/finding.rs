//! Findings in a text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The confidence that a finding is addressed to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Much honest text matches.
    Low,
    /// Some honest text matches.
    Medium,
    /// Hardly any honest text matches.
    High,
}

/// A finding; at most one for each rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the rule.
    pub rule: String,
    /// The effect of the text, such as `tells a model to ignore what it was told`.
    pub what: String,
    /// The confidence.
    pub severity: Severity,
}

impl Severity {
    /// Returns the severity as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it {} (`{}`, {})", self.what, self.rule, self.severity)
    }
}
