//! Persistent storage of tools: values by key, within quotas.
//!
//! A workspace has one SQLite database in its part of the state directory, and each tool has a
//! namespace in it. Every operation is a transaction, so that several processes lose nothing, even
//! if one of them is killed. A damaged file is an error and never treated as empty. `kitbag-policy`
//! decides on grants, and `kitbag-host` provides the guest interface.

mod bounds;
mod database;
mod error;
mod namespace;
mod store;

pub use bounds::{ANSWER_KEYS, KEY_BYTES};
pub use error::{QuotaExceeded, StorageError};
pub use namespace::{Keys, Namespace};
pub use store::{Storage, Usage};

#[cfg(test)]
mod tests;
