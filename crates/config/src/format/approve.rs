//! The form of `[approve]`: the calls that need approval.

use std::borrow::Cow;

use kitbag_policy::ApprovalRule;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::grants::ConditionConfig;
use crate::format::span::{StringOr, Table, Written};

/// The calls that need approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Approval")]
pub(crate) struct ApproveTable {
    /// The rule for each tool without a rule of its own in your user config.
    #[schemars(extend("default" = "never"))]
    pub(crate) default: Option<Written<ApproveConfig>>,
    /// The handling of questions of a class, such as `db:drop`, or of all classes with a prefix,
    /// such as `db:*`: `deny` ends the call, and `ask` asks a person even if an answer is preset.
    #[schemars(extend("examples" = [{ "db:drop": "deny" }]))]
    pub(crate) classes: Option<Table<ClassConfig>>,
}

/// The handling of questions of a class.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ClassConfig {
    /// Ask a person, even if an answer is preset.
    Ask,
    /// End the call without a question.
    Deny,
}

/// The form of the calls that need approval: a word, or conditions.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ApproveConfig(pub(crate) StringOr<WhenConfig>);

/// The arguments for which a person is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Conditions")]
pub(crate) struct WhenConfig {
    /// Conditions on arguments, by name or JSON pointer, with patterns and values as in `where` of
    /// a grant. The call needs approval if all of them may hold. A condition may hold if its
    /// argument is absent, contains `..` segments or cannot be compared.
    #[schemars(extend("examples" = [{ "path": "secrets/**" }]))]
    pub(crate) when: Written<Table<ConditionConfig>>,
}

impl JsonSchema for ApproveConfig {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Approve".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let words = ApprovalRule::WORDS.map(|(word, _)| word);
        let when = WhenConfig::json_schema(generator);
        json_schema!({ "anyOf": [{ "type": "string", "enum": words }, when] })
    }
}
