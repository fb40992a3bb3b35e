//! Remarks on fields of a manifest.

/// A remark on a field that was dropped or that restricts less here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The dotted key of the field. Empty: the whole file.
    pub(crate) key: String,
    /// The consequence, in one line without characters that a terminal acts on.
    pub(crate) text: String,
}
