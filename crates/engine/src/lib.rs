//! Compiles components to native code: the configuration of wasmtime, inspecting and compiling
//! components, and the cache of compiled ones.
//!
//! `kitbag-host` runs components with it, and kitbag's build script compiles the built-ins with it.
//! It does not depend on grants, HTTP or WASI interfaces, so changes in those do not recompile the
//! built-ins.

mod artifact;
mod cache;
mod compile;
mod component_bytes;
mod component_file;
mod content;
mod description;
mod embed;
mod engines;
mod function_docs;
mod inspect;
mod lane;
mod limits;
mod load_error;
mod metering;
mod model;
mod section;
mod sys;
mod translate;
mod wait;

pub use artifact::{EmbeddedArtifact, NativeCode, load_compiled, load_verified};
pub use cache::{
    CacheEntry, CacheError, CacheProblem, CompileLock, DiskCache, Key, VerifiedCode, VerifiedEntry,
    digest_of_bytes,
};
#[cfg(feature = "compiler")]
pub use compile::{COMPILE_COMMAND, compile_worker, precompile};
pub use compile::{CompileMemory, CompiledCode, Unlimited, compile};
pub use component_bytes::ComponentBytes;
pub use component_file::{ComponentFile, OpenComponent, Stamp};
pub use content::{Content, check_pins};
pub use description::DescribeResult;
pub use embed::EmbeddedComponent;
pub use engines::{Engines, config, config_of};
pub use function_docs::{FunctionDocs, function_docs};
pub use inspect::{
    Export, INSTANCE_BYTES, Import, Inspection, Omission, RUN_TYPE, ReadComponent, Support,
    TYPE_DEPTH, inspect_file, lane_of, omissions_of, read_component,
};
pub use lane::{
    BLUFIO, CORE_INSTANCE, ExportKind, Lane, PLUGIN_INSTANCE, PREVIEW_1, SKILL_INSTANCE, is_act,
    is_command, is_hook, is_initialiser,
};
pub use limits::{COMPONENT_BYTES, INSTANCES, STACK_BYTES};
pub use load_error::{InvalidComponent, LoadError};
pub use metering::Metering;
pub use model::Model;
pub use section::{ACT_MANIFEST, act_skill, described as described_section};
pub use translate::{CORE_OUTPUT, PLUGIN_KERNEL, PLUGIN_USER, SKILL_HOST, demangle};
pub use wait::{Compiling, Patient, Wait, Waiter};
