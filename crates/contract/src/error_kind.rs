//! The classification of errors.

use serde::{Deserialize, Serialize};

use crate::limit::LimitKind;

/// The kind of an error.
///
/// Every error is classified once, by its `kind`. Exit codes, JSON names, audit words and MCP
/// errors are tables over the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The command line or a file that it names is not valid.
    Usage,
    /// The configuration is not valid.
    Configuration,
    /// No tool has this name.
    UnknownTool,
    /// The tool is disabled.
    Disabled,
    /// The tool is disabled because its configuration is not valid.
    Broken,
    /// The tool's workspace is not trusted.
    Untrusted,
    /// A configured file does not exist.
    MissingFile,
    /// The component's path contains a link that a tool could have created.
    Link,
    /// Another user can modify the component.
    Distrusted,
    /// The component or its description differs from the approved version.
    Changed,
    /// The file is not a component that kitbag can run.
    Component,
    /// The process that compiles components failed.
    Compiler,
    /// Memory or slots for compiling or loading components are exhausted at the moment.
    LoadBusy,
    /// The arguments do not match the tool's schema.
    Arguments,
    /// The state for resuming a call belongs to another call.
    State,
    /// The call requests a grant that its tool does not have.
    ExcessGrant,
    /// The call requests a higher limit than its tool has.
    ExcessLimit,
    /// No grant allows the call of another tool.
    Grant,
    /// A grant cannot be given.
    GrantUnavailable,
    /// A granted secret does not exist.
    Secret,
    /// The tool's rate limit is exhausted.
    Rate,
    /// The rate counters cannot be stored.
    Counts,
    /// The call cannot be logged.
    Audit,
    /// The call is not approved.
    Approval,
    /// The person declined to answer the question.
    Declined,
    /// An answer does not match its question.
    Answer,
    /// A configured answer does not match its question.
    PresetAnswer,
    /// A question has no answer yet.
    Unanswered,
    /// The person did not consent, or could not be asked.
    NoConsent,
    /// Calls are nested too deeply.
    Depth,
    /// The call reached this limit.
    Limit(LimitKind),
    /// An answer or a call exceeds its size limit.
    Size,
    /// The process has no free file descriptors.
    OpenFiles,
    /// The limit of running and waiting calls, or of their memory, is reached.
    Busy,
    /// The tool trapped.
    Trap,
    /// The worker of the call is gone, and the call may have changed or sent something.
    MayHaveActed,
    /// The tool violates the contract: its schema, an answer or a question is not allowed.
    Contract,
    /// The call was cancelled.
    Cancelled,
    /// Stored data, such as the cache or secrets, cannot be read or written.
    Inaccessible,
    /// Standard output or a requested file cannot be written.
    Output,
    /// The machine or the embedding program does not provide a required resource.
    System,
    /// kitbag itself failed.
    Internal,
}

impl ErrorKind {
    /// Returns true if repeating the same call may succeed.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Busy | Self::LoadBusy | Self::Compiler | Self::Cancelled | Self::Rate)
    }
}
