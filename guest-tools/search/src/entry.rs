//! The entries of a directory.

use kitbag_workspace::Kind;

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The type; links are not followed.
    pub(crate) kind: Kind,
}
