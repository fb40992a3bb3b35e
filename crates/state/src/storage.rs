//! What tools keep between their calls: values by key, within quotas.
//!
//! A workspace has one file, a SQLite database in its part of the state directory, and each
//! tool a namespace in it. Every use is a transaction, so that several processes lose nothing,
//! also where one of them is killed. A file that is damaged is an error, and never an empty
//! store. What a tool is granted is decided by `kitbag-policy`, and the interface that guests
//! see is left to `kitbag-host`.

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
