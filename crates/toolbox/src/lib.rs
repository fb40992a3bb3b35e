//! The registry: a name becomes a component with its grants and limits.
//!
//! Every call goes through one pipeline, whatever front end makes it: see `pipeline.rs`.
//! Running a component is left to `kitbag-host`, reading files of configuration to
//! `kitbag-config`.

mod adapter;
mod advice;
mod ahead;
mod approval;
mod audit;
mod caller;
pub mod consent;
mod context;
mod deadline;
pub mod definitions;
mod edge;
mod eject;
mod ended;
mod error;
mod guest_texts;
mod host_paths;
mod inner;
mod invocation;
mod json;
mod knowledge;
mod knowledge_block;
mod learn;
mod marks;
mod masking;
mod narrow;
mod native;
mod pipeline;
mod program;
mod python;
mod random;
mod recorded;
mod registry;
mod resolve;
mod scope;
mod script;
mod served;
mod temporary;
mod time;
mod tool;
mod toolbox;

pub use audit::ClientName;
pub use caller::Caller;
pub use context::{CallContext, CallEnd, CallRecord, FrontEnd, NoAnswers, Recorder, Reply};
pub use eject::Ejected;
pub use ended::{Completed, Ended, InnerCalls, Marks, Problems, Suspended};
pub use error::{Cut, NearestTool, NotApproved, ToolboxError};

pub use invocation::{Invocation, InvocationKind, OpenState, Resumed};
pub use kitbag_policy::screening::{Finding, Severity};
pub use kitbag_schema::{ArgumentProblem, Arguments, Schema};
pub use knowledge::{KnowledgePrompt, Subjects};
pub use learn::TOPIC_GUEST_PATH;
pub use masking::FoundLeak;

pub use native::{CALL_DEPTH, NativeCall, NativeTool};
pub use recorded::{DescribedParts, wish_lines};
pub use registry::{Builtin, Toolbox};
pub use served::{
    KNOWLEDGE_PROMPT, KNOWLEDGE_SCHEME, PROMPT_PREFIX, RESOURCE_NAME, Served, ServedItem,
};
pub use tool::{KnownTool, Summary, Tool};
