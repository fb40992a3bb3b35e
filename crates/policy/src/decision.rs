//! What comes of a request.

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed.
    Allowed {
        /// The grant that allows it, as [`crate::Kind::lines`] writes it.
        by: String,
    },
    /// Nothing allows it.
    Denied {
        /// What would.
        missing: MissingGrant,
    },
}

/// A grant that would allow what was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingGrant {
    /// The key under `grants` that it belongs to.
    pub key: &'static str,
    /// The entry of that key's list, in TOML.
    pub entry: String,
}
