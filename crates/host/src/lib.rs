//! The sandbox: one call of one component, with what was granted and no more.
//!
//! `kitbag-engine` compiles and loads components; this crate links and runs them. It never reads the environment,
//! the terminal, the current directory or a configuration file: it is given
//! plain types, so that it works the same on a command line, in a server and
//! inside another program. Which tool a name means, what it may reach and
//! who answers its questions is left to `kitbag-toolbox`.

mod blocking;
mod budget;
mod call;
mod capture;
mod compile_memory;
mod component;
mod components;
mod context;
mod description;
mod error;
mod filesystem;
mod grants;
mod guest_exit;
mod host;
mod imports;
mod limiter;
mod limits;
mod native;
mod pool;
mod queue;
mod random;
mod refusals;
mod replay;
mod report;
mod sockets;
mod state;
mod state_pool;
mod support;
mod sys;
mod threads;
mod timer;
mod truncate;

pub use budget::{MemoryBudget, Reservation, ServerMemory};
pub use call::{Call, Completion, Usage};
pub use capture::Captured;
pub use component::{Component, ComponentIdentity, ComponentSource};
pub use context::RunContext;
pub use error::CallError;
pub use filesystem::{Touched, TouchedPaths};
pub use grants::ToolStorage;
pub use grants::{
    Answered, CallableTool, HeldAnswer, Started, ToolAnswer, ToolCalls, ToolPort, ToolRequest,
    ToolRequests,
};
pub use host::{Host, HostOptions};
pub use kitbag_contract::Limits;
#[cfg(feature = "compiler")]
pub use kitbag_engine::{COMPILE_COMMAND, compile_worker};
pub use kitbag_engine::{
    COMPONENT_BYTES, CacheEntry, CacheError, CacheProblem, Compiling, ComponentBytes,
    ComponentFile, Described, DiskCache, EmbeddedArtifact, Export, Import, Inspection,
    InvalidComponent, LoadError, Metering, RUN_TYPE, ReadComponent,
};
pub use kitbag_files::{Distrust, Guard, GuardedPaths, Owners, USUAL_PLACES};
pub use kitbag_http::{
    Account, ClientOptions, Direct, DirectError, FailedConnection, Nameservers, Proxy, ProxyError,
    ProxyRules, RequestRecord, Roots, RootsError,
};
#[cfg(feature = "storage")]
pub use kitbag_state::storage::{QuotaExceeded, Storage, StorageError, Usage as StorageUsage};
pub use queue::{CALL_DEPTH, Concurrency, Permit};
pub use refusals::{Refusal, Refusals, RefusedKind};
pub use replay::Replay;
pub use report::{EventSink, Listener, TextMask};
pub use sockets::SOCKETS_ADVICE;
pub use state_pool::{NoRoom, StatePool};
pub use support::{inspect_file, read_component};
pub use timer::Cancellation;
pub use truncate::cut_at;
