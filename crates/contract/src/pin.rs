//! The digest that a component must have.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kitbag_base::ContentDigest;

/// The digest that a component must have to be run, and who says so.
///
/// A component may have several pins; all of them have to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The digest of its bytes.
    pub digest: ContentDigest,
    /// Where that is recorded, for messages: `.kitbag/kitbag.lock:4:13`.
    pub recorded_in: Arc<str>,
    /// The command that shows the difference and records another digest, for messages:
    /// `kitbag update weather`.
    pub renewed_by: Arc<str>,
}

impl Hash for Pin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}
