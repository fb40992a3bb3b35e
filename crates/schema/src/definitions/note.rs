//! Parts of a schema that the form of a definition cannot express.

/// A [`Loss`](super::Loss) without the name of the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) pointer: String,
    pub(crate) what: String,
}

impl Note {
    pub(super) fn new(pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), what: what.into() }
    }
}
