//! Descriptions of components, parsed within a budget.

use kitbag_base::json::{self, JsonBudget};
use kitbag_contract::Description;

use crate::inspect::Support;

/// The description of a component, which is the same for each build of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DescribeResult {
    /// The component has no description.
    #[default]
    Nothing,
    /// The description. Untrusted.
    Description(Description),
    /// The description is not usable, for this reason. Treated like a missing one.
    Unusable(String),
}

impl DescribeResult {
    /// Returns the description, if any.
    pub fn description(&self) -> Option<&Description> {
        match self {
            Self::Description(description) => Some(description),
            Self::Nothing | Self::Unusable(_) => None,
        }
    }

    /// Returns the problem of the description.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Unusable(problem) => Some(problem),
            Self::Nothing | Self::Description(_) => None,
        }
    }

    /// Parses a description.
    pub fn read(text: &[u8], support: &Support) -> Self {
        let value = match json::parse(text, JsonBudget::DESCRIPTION) {
            Ok(value) => value,
            Err(error) => return Self::Unusable(error.to_string()),
        };
        if !value.is_object() {
            return Self::Unusable("it is not a JSON object".to_owned());
        }
        let described = serde_json::from_value(value).and_then(|description: Description| {
            let mut requested = description.tools.iter().filter_map(|tool| tool.grants.as_ref());
            requested.try_for_each(support.check_grants)?;
            Ok(description)
        });
        match described {
            Ok(description) => Self::Description(description),
            Err(error) => Self::Unusable(error.to_string()),
        }
    }

    /// Formats for the cache: a JSON object, a JSON string with the problem, or nothing.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let bytes = match self {
            Self::Nothing => Ok(Vec::new()),
            Self::Description(description) => serde_json::to_vec(description),
            Self::Unusable(problem) => serde_json::to_vec(problem),
        };
        bytes.expect("a description has string keys only")
    }

    /// Parses the result of [`to_bytes`](Self::to_bytes), which is within the budget.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(match bytes {
            [] => Self::Nothing,
            [b'"', ..] => Self::Unusable(serde_json::from_slice(bytes).ok()?),
            _ => Self::Description(serde_json::from_slice(bytes).ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_cached_unchanged() {
        for text in [r#"{"name":"a","inputSchema":{"x":[1]}}"#, "[1,", "{}", "[]", ""] {
            let described = DescribeResult::read(text.as_bytes(), &Support::ANY);
            assert_eq!(
                DescribeResult::from_bytes(&described.to_bytes()),
                Some(described),
                "{text}"
            );
        }
        assert_eq!(
            DescribeResult::from_bytes(&DescribeResult::Nothing.to_bytes()),
            Some(DescribeResult::Nothing)
        );
        assert_eq!(DescribeResult::from_bytes(b"{}"), None);
    }
}
