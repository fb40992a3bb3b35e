//! What is in a directory.

use kitbag_workspace::Kind;

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// What it is, without following a link.
    pub(crate) kind: Kind,
}
