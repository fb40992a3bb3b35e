//! The registry, which resolves a name to a component with its grants and limits.
//!
//! Every call from every front end goes through one pipeline, in `pipeline.rs`. `kitbag-host` runs
//! components, and `kitbag-config` reads configuration files.

mod advice;
mod approval;
mod audit;
mod builtins;
mod call;
pub mod consent;
pub mod discovery;
mod error;
mod pipeline;
mod registry;
mod remote;
mod screening;
mod sources;

pub use audit::ClientName;
pub use builtins::knowledge::{KnowledgePrompt, Subjects};
pub use builtins::learn::TOPIC_GUEST_PATH;
pub use builtins::skills::{Skill, SkillFile, Skills};
pub use builtins::{Builtin, Ejected};
pub use call::caller::Caller;
pub use call::context::{
    CallContext, CallRecord, CallStatus, FrontEnd, NoAnswers, Recorder, Reply,
};
pub use call::invocation::{Invocation, InvocationKind, OpenState, Resumed};
pub use call::outcome::{CallOutcome, Completed, InnerCalls, Problems, ScreeningReport, Suspended};
pub use error::{NearestTool, NotApproved, ToolboxError, Truncation};
pub use kitbag_policy::screening::{Finding, Severity};
pub use kitbag_schema::{ArgumentProblem, Arguments, Schema};
pub use registry::catalog::{
    KNOWLEDGE_PROMPT, KNOWLEDGE_SCHEME, PROMPT_PREFIX, RESOURCE_NAME, SERVER_SCHEME, ServedItem,
    ServedItems,
};
pub use registry::lock::{RecordedDescription, request_lines};
pub use registry::tool::{KnownTool, Summary, Tool};
pub use registry::{Toolbox, definitions};
pub use remote::{
    Journal, RemoteCall, RemoteCompletion, RemoteEnd, RemoteFailure, RemoteFuture, RemoteRunner,
    RemoteUsage,
};
pub use screening::masking::FoundLeak;
pub use sources::native::{CALL_DEPTH, NativeCall, NativeTool};
pub use sources::server::reach as server_reach;
pub use sources::server_items::{
    ItemChange, ItemSubscription, PromptRole, ServerItem, ServerSubject,
};

#[cfg(test)]
mod tests;
