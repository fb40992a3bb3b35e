//! Which content of a workspace a person trusts.
//!
//! The record of a workspace lies in the state directory of the user, outside of every
//! workspace, under a hash of its canonical path. It holds the digest of each file that
//! configures the workspace, of each component, and the places outside of the workspace, or
//! behind its links, that it names. [`TrustRecord::changes`] names the files that were edited
//! since, and [`TrustStore::texts`] has the texts that were trusted, so that `kitbag-config` can
//! compare what both ask for.
//!
//! What makes up the content of a workspace is left to `kitbag-config`, and asking a person
//! to the program.

mod record;
mod store;

pub use record::{TrustRecord, TrustedPlace, WorkspaceEdit, digest_of, digest_of_reader};
pub use store::{TrustError, TrustStore, TrustedContent, TrustedTexts};
