//! The expected digest of a component.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kitbag_base::ContentDigest;

/// The digest that a component must have to run, and its origin.
///
/// A component may have several pins, and all must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The digest of the component's bytes.
    pub digest: ContentDigest,
    /// The place that records the digest, for messages: `.kitbag/kitbag.lock:4:13`.
    pub recorded_in: Arc<str>,
    /// The command that shows the difference and records the new digest, for messages:
    /// `kitbag update weather`.
    pub renewed_by: Arc<str>,
}

impl Hash for Pin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}
