//! The outcome of a call.

use serde::{Deserialize, Serialize};

use crate::AnswerType;

/// The outcome of a call as the tool reports it.
///
/// A failure of the host (a limit, a trap, a refused component) is not an outcome but an error of
/// the call.
///
/// Contract: `wit/tool.wit`, variant `outcome`.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The result for the model.
    Success(String),
    /// The tool could not do the requested work.
    Error(ErrorInfo),
    /// The tool needs an answer first and has changed nothing yet.
    NeedsInput(Question),
}

/// Why a tool could not do the requested work.
///
/// Contract: `wit/tool.wit`, record `error-info`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// One sentence that the model can act on.
    pub message: String,
    /// Causes, from the outermost to the innermost; not shown to the model.
    pub trace: Vec<String>,
    /// True if repeating the same call later may succeed.
    pub transient: bool,
}

impl ErrorInfo {
    /// Creates an error that is not transient.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), trace: Vec::new(), transient: false }
    }
}

/// The longest `id` of a question, in bytes.
pub const QUESTION_ID_BYTES: usize = 256;

/// The longest `text` of a question, and the longest `default`, in bytes.
pub const QUESTION_TEXT_BYTES: usize = 64 << 10;

/// The longest `answer-type` of a question, options included, in bytes.
pub const ANSWER_TYPE_BYTES: usize = 64 << 10;

/// A question that only a person can answer.
///
/// Contract: `wit/tool.wit`, record `question`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// The key of the answer in the tool's next call.
    pub id: String,
    /// The question for a person. Untrusted text.
    pub text: String,
    /// The kind of answer that the tool accepts.
    pub answer_type: AnswerType,
    /// The suggested answer; never used as an answer.
    pub default: Option<String>,
    /// True if the answer is a person's consent, which no model can give.
    #[serde(rename = "consent", skip_serializing_if = "std::ops::Not::not")]
    pub is_consent: bool,
    /// The subject of the question, in a word that a person's rules can name, such as `db:drop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The name of the tool that asks. The host sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// The host's request to approve a call. Tools cannot set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalRequest>>,
}

/// The host's request for a person's approval of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ApprovalRequest {
    /// The tool that is called.
    pub tool: String,
    /// The call in one line. Escaped but untrusted.
    pub line: String,
    /// The configuration that would allow the call without a question, as `set \`approve =
    /// "never"\` at …`.
    pub advice: String,
    /// True if another tool makes the call.
    #[serde(rename = "inner")]
    pub is_inner: bool,
}

impl Question {
    /// Returns the size as JSON, in bytes.
    pub fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |json| json.len())
    }
}

impl ApprovalRequest {
    /// The answer that allows only this call.
    pub const ONCE: &str = "yes";

    /// The answer that allows such calls for this session: until the process ends.
    pub const ALWAYS: &str = "always";

    /// The answer that refuses the call.
    pub const NO: &str = "no";

    /// The title of an approval in a form. Questions of tools may not use these words.
    pub const TITLE: &str = "Allow this call?";

    /// The prefix of approval ids. Questions of tools may not use it.
    pub const ID_PREFIX: &str = "kitbag/";
}
