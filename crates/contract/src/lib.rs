//! The contract between kitbag and its tools.
//!
//! This is the only crate that reads `wit/`. It holds the plain types of a
//! tool, a call and an outcome, which every other crate speaks, and, behind the
//! feature `bindings`, the host side of the WIT world with conversions between
//! the two. Running a component is left to `kitbag-host`.

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

pub use answer::{Answer, AnswerError, AnswerType, Choice, Field, is_class};
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
    ANSWER_TYPE_BYTES, ApprovalRequest, ErrorInfo, Outcome, QUESTION_CLASS_BYTES,
    QUESTION_ID_BYTES, QUESTION_TEXT_BYTES, Question,
};
pub use pin::Pin;
pub use question_text::barred;

/// Name of the WIT package that holds the contract, without its version.
pub const PACKAGE: &str = "kitbag:tool";

/// Version of the contract that this build speaks.
///
/// A component that names another version of [`PACKAGE`] is refused.
pub const VERSION: &str = "0.1.0";

/// The directory under which the workspace is granted to a tool.
///
/// It is also the guest path that a tool's `context.root` prefers.
pub const WORKSPACE_GUEST_PATH: &str = "/workspace";

/// What stands for the built-in list among the names that a granted directory protects.
pub const PROTECTED_BY_DEFAULT: &str = "default";
