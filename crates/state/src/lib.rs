//! Kitbag's persistent data: trust records, rate counters, the audit log, the storage of tools, and
//! the digests of indexes.
//!
//! All of it is in the user's state directory, outside every workspace. Each workspace has a part
//! of its own, named by a hash of its canonical path ([`WorkspaceState`]). Directories are created
//! on first use and are private to the user; a directory that another user could have changed is
//! refused. Callers pass the directory's path: this crate does not read the environment.

pub mod audit;
mod dirs;
mod files;
mod indexes;
pub mod rates;
#[cfg(feature = "storage")]
pub mod storage;
pub mod trust;

pub use dirs::{Lock, SharedState, StateError, WorkspaceState};
use dirs::{check_file, open};
pub use indexes::IndexPins;
