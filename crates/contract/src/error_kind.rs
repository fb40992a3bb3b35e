//! The classification of errors: one kind, from which all else is read in tables.

use crate::limit::LimitKind;

/// The kind of an error.
///
/// An error is classified once, by its `kind`. Exit codes, names in JSON, words of the audit
/// log and errors of MCP are tables over the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The command line, or a file that it names, is wrong.
    Usage,
    /// The configuration is wrong.
    Configuration,
    /// No tool has this name.
    UnknownTool,
    /// The tool is switched off.
    Disabled,
    /// The tool is off because its configuration is broken.
    Broken,
    /// The workspace of the tool is not trusted.
    Untrusted,
    /// A file that the configuration names does not exist.
    MissingFile,
    /// The component is on a path that a tool could have made.
    Link,
    /// Another user can change the component.
    Distrusted,
    /// The component or its description differs from what a person agreed to.
    Changed,
    /// The file is not a component that kitbag can run.
    Component,
    /// The process that compiles components failed.
    Compiler,
    /// Memory or places for compiling or loading a component are used up for the moment.
    LoadBusy,
    /// The arguments do not fit the schema of the tool.
    Arguments,
    /// The state with which a call is to be resumed belongs to another call.
    State,
    /// The call asks for a grant that its tool does not have.
    ExcessGrant,
    /// The call asks for a higher limit than its tool has.
    ExcessLimit,
    /// No grant allows the call of another tool.
    Grant,
    /// A grant cannot be given.
    GrantUnavailable,
    /// A secret that the tool is granted does not exist.
    Secret,
    /// The rate of the tool is used up.
    Rate,
    /// The number of calls cannot be kept.
    Counts,
    /// The call cannot be logged.
    Audit,
    /// The call is not approved.
    Approval,
    /// The person does not answer the question.
    Declined,
    /// An answer does not fit its question.
    Answer,
    /// An answer in the configuration does not fit its question.
    PresetAnswer,
    /// A question is open.
    Unanswered,
    /// The person did not consent, or could not be asked.
    NoConsent,
    /// Calls are nested too deeply.
    Depth,
    /// The call reached this limit.
    Limit(LimitKind),
    /// An answer or a call is larger than its bounds.
    Size,
    /// The process may not have more files open.
    OpenFiles,
    /// As many calls are running and waiting as allowed, or their memory is reserved.
    Busy,
    /// The tool broke off.
    Trap,
    /// The tool breaks the contract: its schema, an answer or a question is not allowed.
    Contract,
    /// The call was cancelled.
    Cancelled,
    /// Something that kitbag keeps, such as the cache or secrets, cannot be read or changed.
    Inaccessible,
    /// Standard output or a requested file cannot be written.
    Output,
    /// The machine or the embedding program does not give kitbag what it needs.
    System,
    /// kitbag itself failed.
    Internal,
}

impl ErrorKind {
    /// Whether the same call may succeed when it is made again.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Busy | Self::LoadBusy | Self::Compiler | Self::Cancelled | Self::Rate)
    }
}
