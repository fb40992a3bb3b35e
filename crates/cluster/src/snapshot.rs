//! Snapshots: the configuration of a workspace that a person publishes for its machines.
//!
//! A snapshot is a manifest, signed by the person's key, that names each file of the workspace by
//! its digest. The manifest is the value of one key; the files are in an object store. A machine
//! accepts a manifest only from a publisher that it was started with, and never one that is older
//! than the last it accepted: an attacker who controls the servers can withhold a snapshot, but can
//! neither change one nor bring an old one back.

mod directory;
mod error;
mod known;
mod manifest;
mod store;
#[cfg(test)]
mod tests;

pub use error::SnapshotError;
pub use known::{Known, KnownSnapshots};
pub use manifest::{FileEntry, Manifest, SignedManifest};
pub use store::{NewFile, NewSnapshot, SnapshotStore, SnapshotWatch};
