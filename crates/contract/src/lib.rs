//! The contract between kitbag and its tools.
//!
//! Only this crate reads `wit/`. It defines the plain types of a tool, a call and an outcome that
//! all other crates use and, with the feature `bindings`, the host side of the WIT world with
//! conversions. `kitbag-host` runs components.

#[cfg(feature = "bindings")]
pub mod bindings;

mod answer;
mod call;
mod content;
mod description;
mod error_kind;
mod limit;
mod name;
mod outcome;
mod pin;
mod question_text;

pub use answer::{Answer, AnswerError, AnswerType, Choice, Field, QUESTION_CLASS_BYTES, is_class};
pub use call::{Action, Context, UnknownArguments};
pub use content::{
    Content, ContentError, LogLevel, Media, ParseLevelError, Progress, Resource, ResourceBody,
    ResourceLink,
};
pub use description::{
    Annotations, Description, PromptArgument, PromptDescription, ResourceDescription,
    ResourceTemplateDescription, ToolDescription,
};
pub use error_kind::ErrorKind;
pub use limit::{
    ENTRY_BYTES, LEAST_SERVER_MEMORY, LimitKind, Limits, SERVER_MEMORY, SESSION_IDLE, STDIO_BYTES,
};
pub use name::{ToolName, ToolNameError};
pub use outcome::{
    ANSWER_TYPE_BYTES, ApprovalRequest, ErrorInfo, Outcome, QUESTION_ID_BYTES, QUESTION_TEXT_BYTES,
    Question,
};
pub use pin::Pin;
pub use question_text::barred;

/// The name of the WIT package of the contract, without its version.
pub const PACKAGE: &str = "kitbag:tool";

/// The version of the contract that this build supports.
///
/// Components that import another version of [`PACKAGE`] are refused.
pub const VERSION: &str = "0.1.0";

/// The guest path of the workspace.
///
/// A tool's `context.root` prefers this path.
pub const WORKSPACE_GUEST_PATH: &str = "/workspace";

/// The name of the built-in list in the protected names of a granted directory.
pub const PROTECTED_BY_DEFAULT: &str = "default";
