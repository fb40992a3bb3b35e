//! Notes on fields of a manifest.

/// A note on a field that was dropped or that kitbag enforces less strictly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The dotted key of the field. Empty for the whole file.
    pub(crate) key: String,
    /// The consequence, in one line without terminal control characters.
    pub(crate) text: String,
}
