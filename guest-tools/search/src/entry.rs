//! What a directory says of what is in it.

use kitbag_workspace::Kind;

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its name, where that is UTF-8.
    pub(crate) name: Option<String>,
    /// What it is, without following a link.
    pub(crate) kind: Kind,
}
