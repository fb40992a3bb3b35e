//! What a tool answers.

use serde::{Deserialize, Serialize};

use crate::AnswerType;

/// How a call ended, as the tool itself says it.
///
/// A fault of the host (a limit, a trap, a refused component) is not an
/// outcome but an error of the call.
///
/// Contract: `wit/tool.wit`, variant `outcome`.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The result, as the model reads it.
    Success(String),
    /// The tool could not do what was asked.
    Error(ErrorInfo),
    /// The tool needs an answer first; it has changed nothing yet.
    NeedsInput(Question),
}

/// Why a tool could not do what was asked.
///
/// Contract: `wit/tool.wit`, record `error-info`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// One sentence that the model can act on.
    pub message: String,
    /// Causes, from the outermost to the innermost; not shown to the model.
    pub trace: Vec<String>,
    /// Whether the same call may succeed when it is made again later.
    pub transient: bool,
}

impl ErrorInfo {
    /// An error with this message, which the same call would have again.
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

/// Something that only a person can decide.
///
/// Contract: `wit/tool.wit`, record `question`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// The key under which the answer is passed back to the tool.
    pub id: String,
    /// The question as a person reads it. Untrusted text.
    pub text: String,
    /// The kind of answer the tool takes.
    pub answer_type: AnswerType,
    /// What is suggested to the person; never taken for an answer.
    pub default: Option<String>,
    /// Whether the answer is a person's consent, which no model gives for them.
    #[serde(rename = "consent", skip_serializing_if = "std::ops::Not::not")]
    pub is_consent: bool,
    /// What it is about, in a word that rules of a person's can be about, such as `db:drop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The name of the tool that asks, which the host sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// The host's own question whether a call may be made. No tool has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalRequest>>,
}

/// The longest class of a question, in bytes.
pub const QUESTION_CLASS_BYTES: usize = 64;

/// What the host asks a person before it makes a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ApprovalRequest {
    /// The tool that is called.
    pub tool: String,
    /// The call in one line. Escaped, but untrusted.
    pub line: String,
    /// What would allow it without a question, as `set \`approve = "never"\` at …`.
    pub advice: String,
    /// Another tool makes the call.
    #[serde(rename = "inner")]
    pub is_inner: bool,
}

impl Question {
    /// How many bytes it has as JSON.
    pub fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |json| json.len())
    }
}

impl ApprovalRequest {
    /// The answer by which a person allows this call alone.
    pub const ONCE: &str = "yes";

    /// The answer by which a person allows such calls in this session: until the process ends.
    pub const ALWAYS: &str = "always";

    /// The answer by which a person refuses the call.
    pub const NO: &str = "no";

    /// The title of such a question in a form. No tool asks with these words.
    pub const TITLE: &str = "Allow this call?";

    /// How the ids of such questions begin. No tool asks one with such an id.
    pub const ID_PREFIX: &str = "kitbag/";
}
