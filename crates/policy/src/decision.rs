//! What comes of a request.

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed.
    Allowed {
        /// The grant that allows it, as [`crate::Kind::lines`] writes it.
        by: String,
    },
    /// Nothing allows it, or something denies it.
    Denied {
        /// Why, in a line.
        reason: String,
        /// What would allow it. `None`: no grant can.
        missing: Option<MissingGrant>,
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
