//! Everything kitbag remembers between two runs: trust records, rate counts, the audit log and
//! the storage of tools.
//!
//! All of it is stored in the user's state directory, outside of every workspace. Each workspace
//! has a part of its own there, named by a hash of its canonical path ([`WorkspaceState`]).
//! Directories are created on first use and belong to the user alone; a directory that another
//! user could have changed is refused. Callers pass the directory's path in: nothing here reads
//! the environment.

pub mod audit;
mod dirs;
pub mod rates;
#[cfg(feature = "storage")]
pub mod storage;
pub mod trust;

pub use dirs::{Lock, SharedState, StateError, WorkspaceState};
use dirs::{check_file, open};
