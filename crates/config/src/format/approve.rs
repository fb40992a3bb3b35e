//! Before which calls a person is asked, as a file has it.

use std::borrow::Cow;

use kitbag_policy::ApprovalRule;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::grants::ConditionConfig;
use crate::format::spanned::{StringOr, Table, Written};

/// Before which calls you are asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Approval")]
pub(crate) struct ApproveTable {
    /// What counts for a tool of which your own file says nothing else.
    #[schemars(extend("default" = "never"))]
    pub(crate) default: Option<Written<ApproveConfig>>,
    /// What becomes of questions that tools ask under a class, such as `db:drop`, or under one
    /// that begins like `db:*`: `deny` ends the call, and `ask` asks a person whatever answers
    /// are set.
    #[schemars(extend("examples" = [{ "db:drop": "deny" }]))]
    pub(crate) classes: Option<Table<ClassConfig>>,
}

/// What becomes of questions of a class.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ClassConfig {
    /// A person is asked, and no preset answers for them.
    Ask,
    /// The call ends without a question.
    Deny,
}

/// Before which calls a person is asked, as a file has it.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ApproveConfig(pub(crate) StringOr<WhenConfig>);

/// With which arguments a person is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Conditions")]
pub(crate) struct WhenConfig {
    /// What arguments are, by name or JSON pointer: patterns and values as in `where` of a
    /// grant. A person is asked where all of them may fit: where an argument is absent, has
    /// segments `..` or cannot be compared otherwise, it may.
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
