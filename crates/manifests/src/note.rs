//! What is to be said of a manifest.

/// Something of a manifest that was left out or means less here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it stands: dotted keys. Empty: the whole file.
    pub key: String,
    /// What is to be said of it.
    pub text: String,
}
