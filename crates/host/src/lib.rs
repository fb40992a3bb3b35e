//! The sandbox: runs one call of one component, with only its grants.
//!
//! `kitbag-engine` compiles and loads components; this crate links and runs them. It never reads
//! the environment, the terminal, the current directory or a configuration file. Callers pass
//! plain types, so that it works the same on a command line, in a server and inside another
//! program. `kitbag-toolbox` resolves the names of tools, their grants, and answers to questions.

mod call;
mod component;
mod description;
mod error;
mod grants;
mod host;
mod interface;
mod lanes;
mod limits;
mod pool;
mod schedule;
mod sys;

pub use call::capture::CapturedOutput;
pub use call::context::RunContext;
pub use call::refusals::{LOOKUP, Refusal, Refusals, RefusedAccess};
pub use call::replay::Replay;
pub use call::report::{EventSink, Listener, TextMask};
pub use call::truncate::cut_at;
pub use call::{Call, Completion, SOUGHT_TOOLS, Usage};
pub use component::support::{inspect_file, read_component};
pub use component::{Component, ComponentIdentity, ComponentSource};
pub use error::CallError;
pub use grants::ToolStorage;
pub use grants::filesystem::{FileActivity, PathList};
pub use grants::sockets::SOCKETS_ADVICE;
pub use grants::{
    CallableTool, NestedRequest, NestedRequests, PendingAnswer, ToolAnswer, ToolCalls, ToolPort,
    ToolStart, ToolSuccess,
};
pub use host::{Host, HostOptions};
pub use kitbag_contract::Limits;
pub use kitbag_engine::{
    ACT_MANIFEST, COMPONENT_BYTES, CacheEntry, CacheError, CacheProblem, Compiling, ComponentBytes,
    ComponentFile, DescribeResult, DiskCache, EmbeddedArtifact, Export, Import, Inspection,
    InvalidComponent, Lane, LoadError, Metering, Omission, RUN_TYPE, ReadComponent,
};
#[cfg(feature = "compiler")]
pub use kitbag_engine::{COMPILE_COMMAND, compile_worker};
pub use kitbag_fs_guard::{Distrust, Guard, GuardedPaths, Owners, USUAL_PLACES};
pub use kitbag_http::{
    Account, ClientOptions, Direct, DirectError, FailedConnection, Nameservers, Proxy, ProxyError,
    ProxyRules, RecordedResponse, Recordings, RequestRecord, Roots, RootsError,
};
#[cfg(feature = "storage")]
pub use kitbag_state::storage::{QuotaExceeded, Storage, StorageError, Usage as StorageUsage};
pub use lanes::act::act_manifest;
pub use schedule::budget::{MemoryBudget, Reservation};
pub use schedule::queue::{CALL_DEPTH, Concurrency, Permit};
pub use schedule::server_memory::ServerMemory;
pub use schedule::state_pool::{NoRoom, StatePool};
pub use schedule::timer::Cancellation;
pub use sys::lower_thread_priority;
pub use wasmtime_environ::VERSION as ENGINE_VERSION;
