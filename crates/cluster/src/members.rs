//! The keys that may take part in a workspace.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The public keys of the machines of a workspace. A publisher signs them with the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Members {
    /// The front ends, whose calls workers run.
    pub front_ends: BTreeSet<String>,
    /// The workers, whose answers front ends deliver.
    pub workers: BTreeSet<String>,
}
