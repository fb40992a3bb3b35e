//! The arguments of a call. Each action uses its own.

use kitbag_sdk::ErrorInfo;
use kitbag_sdk::serde_json::Value;
use serde::Deserialize;

/// The arguments of a call. They are not checked as a whole: an action uses the ones that it needs
/// and ignores the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Arguments(Value);

impl Arguments {
    /// Returns a required string.
    pub(crate) fn text(&self, key: &str) -> Result<&str, ErrorInfo> {
        self.0[key].as_str().ok_or_else(|| self.invalid(key, "a text"))
    }

    /// Returns a string, or the default.
    pub(crate) fn text_or<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.0[key].as_str().unwrap_or(default)
    }

    /// Returns an optional string.
    pub(crate) fn optional_text(&self, key: &str) -> Option<&str> {
        self.0[key].as_str()
    }

    /// Returns a list of strings; empty by default.
    pub(crate) fn texts(&self, key: &str) -> Vec<&str> {
        let values = self.0[key].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).collect()
    }

    /// Returns a required number.
    pub(crate) fn number(&self, key: &str) -> Result<u64, ErrorInfo> {
        self.0[key].as_u64().ok_or_else(|| self.invalid(key, "a whole number"))
    }

    /// Returns a number, or the default.
    pub(crate) fn number_or(&self, key: &str, default: u64) -> u64 {
        self.0[key].as_u64().unwrap_or(default)
    }

    /// Returns a boolean, or the default.
    pub(crate) fn flag_or(&self, key: &str, default: bool) -> bool {
        self.0[key].as_bool().unwrap_or(default)
    }

    fn invalid(&self, key: &str, expected: &str) -> ErrorInfo {
        ErrorInfo::new(match &self.0[key] {
            Value::Null => format!("invalid arguments: `{key}` is missing"),
            _ => format!("invalid arguments: `{key}` is not {expected}"),
        })
    }
}
