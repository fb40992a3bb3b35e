//! What was found in a text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How sure it is that what is found was meant for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Many honest texts have it.
    Low,
    /// Some do.
    Medium,
    /// Hardly anything else reads like this.
    High,
}

/// What was found, once for each rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the rule.
    pub rule: String,
    /// What the text does, such as `tells a model to ignore what it was told`.
    pub what: String,
    /// How sure that is.
    pub severity: Severity,
}

impl Severity {
    /// As it is written.
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
