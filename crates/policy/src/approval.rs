//! Before which calls a person is asked.

use std::collections::BTreeMap;
use std::fmt;

use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tools::{ArgumentPath, ArgumentPathError, Condition, ConditionError};

/// Before which calls of a tool a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalRule {
    /// None.
    Never,
    /// Those that may change something.
    OnWrite,
    /// All.
    Always,
    /// Those whose arguments may fit all of these conditions. Where that cannot be told, a
    /// person is asked.
    When(BTreeMap<ArgumentPath, Condition>),
}

/// A call that a rule decides on.
#[derive(Clone, Copy, Debug)]
pub struct CallToApprove<'a> {
    /// Its arguments, with defaults filled in.
    pub arguments: &'a Map<String, Value>,
    /// The tool changes nothing that outlives the call.
    pub is_read_only: bool,
    /// The guest path to which relative paths in its arguments belong.
    pub root: &'a str,
}

/// A value is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalRuleError {
    /// Another word.
    #[error(
        "`{}` is no rule; write `never`, `on-write`, `always`, or conditions such as \
         `{{ when = {{ path = \"secrets/**\" }} }}`",
        shown(.0)
    )]
    Word(String),
    /// Another form.
    #[error(
        "a rule is `never`, `on-write`, `always`, or a table with conditions such as \
         `{{ when = {{ path = \"secrets/**\" }} }}`"
    )]
    Form,
    /// No conditions.
    #[error("`when` has no condition; write `always` to be asked before every call")]
    Empty,
    /// More conditions than are held against arguments.
    #[error("`when` has {count} conditions, and {} is the most", ApprovalRule::MOST_CONDITIONS)]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// A key names no argument.
    #[error(transparent)]
    Argument(#[from] ArgumentPathError),
    /// A value is no condition.
    #[error(transparent)]
    Condition(#[from] ConditionError),
}

/// What becomes of questions that tools ask under a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassRule {
    /// A person is asked, and no preset and no model answers for them.
    Ask,
    /// The call ends, and nobody is asked.
    Deny,
}

/// Whether a class is one of those that a pattern means: the same, in any case, or one that begins
/// like it before a `*` at its end.
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

    /// The most conditions of a rule.
    pub const MOST_CONDITIONS: usize = 64;

    /// The rules without conditions, by their names.
    pub const WORDS: [(&str, Self); 3] =
        [("never", Self::Never), ("on-write", Self::OnWrite), ("always", Self::Always)];

    /// Reads a rule as a configuration or a tool says it.
    ///
    /// # Errors
    ///
    /// [`ApprovalRuleError`], where it is none.
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

    /// Reads a rule without conditions.
    ///
    /// # Errors
    ///
    /// [`ApprovalRuleError::Word`].
    pub fn of_word(word: &str) -> Result<Self, ApprovalRuleError> {
        let found = Self::WORDS.into_iter().find(|(name, _)| *name == word);
        found.map(|(_, rule)| rule).ok_or_else(|| ApprovalRuleError::Word(word.to_owned()))
    }

    /// Reads the conditions of a rule.
    ///
    /// # Errors
    ///
    /// [`ApprovalRuleError`], where one is none, and where there are none or too many.
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

    /// Whether a person is asked before a call.
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

    /// The arguments that its conditions name, as a call has them. `None`: it has no conditions, or
    /// the call has nothing there that tells it from another one.
    pub fn named_arguments(&self, arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
        let Self::When(conditions) = self else { return None };
        let named = conditions.keys().map(|path| match path.find(arguments)? {
            Value::Null | Value::Object(_) => None,
            value => Some((path.to_string(), value.clone())),
        });
        named.collect()
    }

    /// As it would be typed.
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
    /// As it stands in TOML.
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
    fn a_person_is_asked_as_the_rule_says() {
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
    fn what_is_no_rule_is_refused() {
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
        assert_eq!(error.to_string(), "`when` has 65 conditions, and 64 is the most");
    }

    #[test]
    fn a_rule_reads_as_toml() {
        let shown = |rule: Value| ApprovalRule::read(&rule).unwrap().to_string();
        assert_eq!(shown(json!("on-write")), "\"on-write\"");
        let when = json!({ "when": { "/a/b": [1, "x"], "path": "secrets/**" } });
        let expected = "{ when = { \"/a/b\" = [1, \"x\"], path = \"secrets/**\" } }";
        assert_eq!(shown(when), expected);
    }

    #[test]
    fn a_class_is_meant_by_its_name_or_its_beginning() {
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
    fn the_named_arguments_are_those_of_the_conditions() {
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
