//! The sandbox: one call of one component, with what was granted and no more.
//!
//! This is the only crate that knows wasmtime. It never reads the environment,
//! the terminal, the current directory or a configuration file: it is given
//! plain types, so that it works the same on a command line, in a server and
//! inside another program. Which tool a name means, what it may reach and
//! who answers its questions is left to `kitbag-toolbox`.

mod artifact;
mod blocking;
mod budget;
mod cache;
mod call;
mod capture;
mod compile;
mod component;
mod component_bytes;
mod component_file;
mod components;
mod content;
mod context;
mod described;
mod embed;
mod engines;
mod error;
mod filesystem;
mod grants;
mod guest_exit;
mod host;
mod imports;
mod inspect;
mod limiter;
mod limits;
mod load_error;
mod metering;
mod native;
mod queue;
mod random;
mod refusals;
mod replay;
mod report;
mod section;
mod sockets;
mod state;
mod state_pool;
mod sys;
mod threads;
mod timer;
mod truncate;
mod wait;

pub use artifact::EmbeddedArtifact;
pub use budget::{MemoryBudget, Reservation, ServerMemory};
pub use cache::{CacheEntry, CacheError, CacheProblem, DiskCache};
pub use call::{Call, Completion, Usage};
pub use capture::Captured;
#[cfg(feature = "compiler")]
pub use compile::{COMPILE_COMMAND, compile_worker};
pub use component::{Component, ComponentIdentity, ComponentSource};
pub use component_bytes::ComponentBytes;
pub use component_file::ComponentFile;
pub use context::RunContext;
pub use described::Described;
pub use embed::EmbeddedComponent;
pub use error::CallError;
pub use filesystem::{Touched, TouchedPaths};
pub use grants::ToolStorage;
pub use grants::{
    Answered, CallableTool, HeldAnswer, Started, ToolAnswer, ToolCalls, ToolPort, ToolRequest,
    ToolRequests,
};
pub use host::{Host, HostOptions};
pub use inspect::{
    Export, Import, Inspection, RUN_TYPE, ReadComponent, inspect_file, read_component,
};
pub use kitbag_contract::Limits;
pub use kitbag_files::{Distrust, Guard, GuardedPaths, Owners, USUAL_PLACES};
pub use kitbag_http::{
    Account, ClientOptions, Direct, DirectError, FailedConnection, Nameservers, Proxy, ProxyError,
    ProxyRules, RequestRecord, Roots, RootsError,
};
#[cfg(feature = "storage")]
pub use kitbag_state::storage::{QuotaExceeded, Storage, StorageError, Usage as StorageUsage};
pub use limits::COMPONENT_BYTES;
pub use load_error::{InvalidComponent, LoadError};
pub use metering::Metering;
pub use queue::{CALL_DEPTH, Concurrency, Permit};
pub use refusals::{Refusal, Refusals, RefusedKind};
pub use replay::Replay;
pub use report::{Compiling, EventSink, Listener, TextMask};
pub use sockets::SOCKETS_ADVICE;
pub use state_pool::{NoRoom, StatePool};
pub use timer::Cancellation;
pub use truncate::cut_at;
