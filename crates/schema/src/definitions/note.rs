//! What the form of a definition cannot express of a schema.

/// A [`Loss`](super::Loss) of a schema, before it is known whose that is.
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
