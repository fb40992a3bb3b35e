//! Trust of a person in the content of a workspace.
//!
//! The record of a workspace is in the user's state directory, outside every workspace, under a
//! hash of its canonical path. It contains the digests of each file that configures the workspace
//! and of each component, and the places outside the workspace, or behind its links, that it names.
//! [`TrustRecord::changes`] lists the files that were edited since, and [`TrustStore::texts`]
//! returns the trusted content, so that `kitbag-config` can compare what both request.
//!
//! `kitbag-config` defines the content of a workspace, and the program asks the person.

mod record;
mod store;

pub use record::{TrustRecord, TrustedPlace, WorkspaceEdit, digest_of, digest_of_reader};
pub use store::{TrustError, TrustStore, TrustedContent, TrustedTexts};
