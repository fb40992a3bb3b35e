//! What comes of a request.

use crate::storage::StorageGrant;

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed.
    Allowed {
        /// The grant that allows it, as [`crate::Kind::lines`] writes it.
        by: String,
    },
    /// Nothing allows it, or something denies it.
    Denied {
        /// Why, in a line.
        reason: String,
        /// What would allow it. `None`: no grant can.
        missing: Option<MissingGrant>,
    },
}

/// A grant that would allow what was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingGrant {
    /// The key under `grants` that it belongs to.
    pub key: &'static str,
    /// The entry of that key's list or table, in TOML; of `storage`, which is neither, the
    /// setting: `storage = true`.
    pub entry: String,
}

impl MissingGrant {
    /// The dotted key to which the entry is added, in a configuration.
    pub fn table(&self, tool: &str) -> String {
        match self.key {
            StorageGrant::KEY => format!("tools.{tool}.grants"),
            key => format!("tools.{tool}.grants.{key}"),
        }
    }
}
