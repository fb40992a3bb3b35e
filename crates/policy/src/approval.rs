//! Rules for the calls that need a person's approval.

use std::collections::BTreeMap;
use std::fmt;

use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tools::{ArgumentPath, ArgumentPathError, Condition, ConditionError};

/// The calls of a tool that need a person's approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalRule {
    /// No calls.
    Never,
    /// Calls that may change something.
    OnWrite,
    /// All calls.
    Always,
    /// Calls whose arguments may match all of these conditions. If a match cannot be decided,
    /// approval is needed.
    When(BTreeMap<ArgumentPath, Condition>),
}

/// A call to decide on.
#[derive(Clone, Copy, Debug)]
pub struct CallToApprove<'a> {
    /// The arguments, including defaults.
    pub arguments: &'a Map<String, Value>,
    /// The tool makes no changes that outlive the call.
    pub is_read_only: bool,
    /// The guest path against which relative paths in the arguments are resolved.
    pub root: &'a str,
}

/// The error for a value that is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalRuleError {
    /// An unknown word.
    #[error(
        "`{}` is not a rule; write `never`, `on-write`, `always`, or conditions such as \
         `{{ when = {{ path = \"secrets/**\" }} }}`",
        shown(.0)
    )]
    Word(String),
    /// A value of another type.
    #[error(
        "a rule must be `never`, `on-write`, `always`, or a table with conditions such as \
         `{{ when = {{ path = \"secrets/**\" }} }}`"
    )]
    Form,
    /// The rule has no conditions.
    #[error("`when` has no condition; write `always` to ask before every call")]
    Empty,
    /// More conditions than the limit.
    #[error("`when` has {count} conditions; the limit is {}", ApprovalRule::MOST_CONDITIONS)]
    TooMany {
        /// The number of conditions.
        count: usize,
    },
    /// A key is not an argument path.
    #[error(transparent)]
    Argument(#[from] ArgumentPathError),
    /// A value is not a condition.
    #[error(transparent)]
    Condition(#[from] ConditionError),
}

/// The handling of questions that tools ask under a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassRule {
    /// A person must answer; presets and models may not.
    Ask,
    /// The call ends without a question.
    Deny,
}

/// Returns true if a pattern matches a class, ignoring case. The pattern is the class itself or a
/// prefix followed by `*`.
pub fn is_of_class(pattern: &str, class: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => pattern.eq_ignore_ascii_case(class),
        Some(start) => {
            let begin = class.as_bytes().get(..start.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes()))
        }
    }
}

impl ApprovalRule {
    /// The key of the conditions.
    pub const WHEN: &str = "when";

    /// Maximum number of conditions of one rule.
    pub const MOST_CONDITIONS: usize = 64;

    /// The rules without conditions, by name.
    pub const WORDS: [(&str, Self); 3] =
        [("never", Self::Never), ("on-write", Self::OnWrite), ("always", Self::Always)];

    /// Parses a rule of a configuration or a tool.
    ///
    /// # Errors
    ///
    /// [`ApprovalRuleError`] if the value is not a rule.
    pub fn read(value: &Value) -> Result<Self, ApprovalRuleError> {
        match value {
            Value::String(word) => Self::of_word(word),
            Value::Object(table) => match (table.get(Self::WHEN), table.len()) {
                (Some(Value::Object(conditions)), 1) => Self::of_conditions(conditions),
                _ => Err(ApprovalRuleError::Form),
            },
            _ => Err(ApprovalRuleError::Form),
        }
    }

    /// Parses a rule without conditions.
    ///
    /// # Errors
    ///
    /// [`ApprovalRuleError::Word`].
    pub fn of_word(word: &str) -> Result<Self, ApprovalRuleError> {
        let found = Self::WORDS.into_iter().find(|(name, _)| *name == word);
        found.map(|(_, rule)| rule).ok_or_else(|| ApprovalRuleError::Word(word.to_owned()))
    }

    /// Parses the conditions of a rule.
    ///
    /// # Errors
    ///
    /// [`ApprovalRuleError`] if a condition is not valid, or if there are no or too many
    /// conditions.
    pub fn of_conditions(conditions: &Map<String, Value>) -> Result<Self, ApprovalRuleError> {
        match conditions.len() {
            0 => return Err(ApprovalRuleError::Empty),
            count if count > Self::MOST_CONDITIONS => {
                return Err(ApprovalRuleError::TooMany { count });
            }
            _ => {}
        }
        let read = |(path, condition): (&String, &Value)| {
            Ok((ArgumentPath::new(path.as_str())?, Condition::new(condition)?))
        };
        conditions.iter().map(read).collect::<Result<_, _>>().map(Self::When)
    }

    /// Returns true if a call needs approval.
    pub fn asks(&self, call: &CallToApprove<'_>) -> bool {
        match self {
            Self::Never => false,
            Self::OnWrite => !call.is_read_only,
            Self::Always => true,
            Self::When(conditions) => conditions
                .iter()
                .all(|(path, condition)| condition.may_hold(path, call.arguments, call.root)),
        }
    }

    /// Returns the arguments of a call that the conditions name. `None` if the rule has no
    /// conditions, or if one of the arguments is missing, null or an object.
    pub fn named_arguments(&self, arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
        let Self::When(conditions) = self else { return None };
        let named = conditions.keys().map(|path| match path.find(arguments)? {
            Value::Null | Value::Object(_) => None,
            value => Some((path.to_string(), value.clone())),
        });
        named.collect()
    }

    /// Returns the rule as it would be typed.
    pub fn to_json(&self) -> Value {
        match self {
            Self::When(conditions) => {
                let conditions = conditions.iter();
                let conditions: Map<_, _> =
                    conditions.map(|(path, it)| (path.to_string(), it.to_json())).collect();
                Map::from_iter([(Self::WHEN.to_owned(), conditions.into())]).into()
            }
            word => {
                let found = Self::WORDS.iter().find(|(_, rule)| rule == word);
                found.map_or("always", |(name, _)| *name).into()
            }
        }
    }
}

impl fmt::Display for ApprovalRule {
    /// Formats the rule as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::When(conditions) = self else { return write!(f, "{}", self.to_json()) };
        let is_bare = |key: &str| {
            key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        let one = |(path, condition): (&ArgumentPath, &Condition)| match is_bare(path.as_str()) {
            true => format!("{path} = {condition}"),
            false => format!("{} = {condition}", Value::from(path.as_str())),
        };
        let conditions: Vec<_> = conditions.iter().map(one).collect();
        write!(f, "{{ {} = {{ {} }} }}", Self::WHEN, conditions.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(rule: Value, arguments: Value, is_read_only: bool, expected: bool) {
        let read = ApprovalRule::read(&rule).unwrap();
        let arguments = arguments.as_object().unwrap();
        let call = CallToApprove { arguments, is_read_only, root: "/workspace" };
        assert_eq!(read.asks(&call), expected, "{rule} {arguments:?}");
        assert_eq!(read.to_json(), rule);
    }

    #[test]
    fn rules_decide_which_calls_need_approval() {
        for is_read_only in [false, true] {
            check(json!("never"), json!({}), is_read_only, false);
            check(json!("always"), json!({}), is_read_only, true);
            check(json!("on-write"), json!({}), is_read_only, !is_read_only);
        }
        let when = json!({ "when": { "path": "secrets/**", "force": true } });
        check(when.clone(), json!({ "path": "secrets/a", "force": true }), true, true);
        check(when.clone(), json!({ "path": "secrets/a", "force": false }), true, false);
        check(when.clone(), json!({ "path": "a", "force": true }), false, false);
        check(when, json!({ "path": "secrets/a" }), true, true);
    }

    #[test]
    fn invalid_rules_are_refused() {
        for rule in [
            json!("sometimes"),
            json!(true),
            json!(null),
            json!({}),
            json!({ "when": {} }),
            json!({ "when": "path" }),
            json!({ "when": { "path": "a" }, "unless": {} }),
            json!({ "when": { "": "a" } }),
            json!({ "when": { "path": {} } }),
            json!({ "when": { "path": "a**" } }),
        ] {
            assert!(ApprovalRule::read(&rule).is_err(), "{rule}");
        }
        let many: Map<_, _> = (0..65).map(|n| (format!("a{n}"), json!(1))).collect();
        let error = ApprovalRule::of_conditions(&many).unwrap_err();
        assert_eq!(error.to_string(), "`when` has 65 conditions; the limit is 64");
    }

    #[test]
    fn rules_are_formatted_as_toml() {
        let shown = |rule: Value| ApprovalRule::read(&rule).unwrap().to_string();
        assert_eq!(shown(json!("on-write")), "\"on-write\"");
        let when = json!({ "when": { "/a/b": [1, "x"], "path": "secrets/**" } });
        let expected = "{ when = { \"/a/b\" = [1, \"x\"], path = \"secrets/**\" } }";
        assert_eq!(shown(when), expected);
    }

    #[test]
    fn class_patterns_match_names_and_prefixes() {
        for (pattern, class, expected) in [
            ("db:drop", "db:drop", true),
            ("db:drop", "DB:Drop", true),
            ("db:drop", "db:drops", false),
            ("db:*", "db:drop", true),
            ("DB:*", "db:", true),
            ("db:*", "db", false),
            ("*", "anything", true),
        ] {
            assert_eq!(is_of_class(pattern, class), expected, "{pattern} {class}");
        }
    }

    #[test]
    fn named_arguments_come_from_the_conditions() {
        let rule = ApprovalRule::read(&json!({ "when": { "/a/b": 1, "c": true } })).unwrap();
        let check = |arguments: Value, expected: Option<Value>| {
            let named = rule.named_arguments(arguments.as_object().unwrap());
            assert_eq!(named.map(Value::Object), expected, "{arguments}");
        };
        check(json!({ "a": { "b": 2 }, "c": true }), Some(json!({ "/a/b": 2, "c": true })));
        for undecided in [json!(null), json!({})] {
            check(json!({ "a": { "b": 2 }, "c": undecided, "d": 3 }), None);
        }
        check(json!({ "a": { "b": 2 }, "d": 3 }), None);
        assert_eq!(ApprovalRule::Always.named_arguments(&Map::new()), None);
    }
}
