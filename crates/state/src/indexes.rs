//! The digests of the indexes of tools that a person searches.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{SharedState, StateError, files};

/// Maximum size of the file.
const FILE_BYTES: u64 = 4 << 20;

/// The name of the file.
const FILE: &str = "pins.json";

/// The recorded digests of indexes. Accesses no files until it is used.
#[derive(Debug)]
pub struct IndexPins {
    state: SharedState,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    /// The digests by reference.
    digests: BTreeMap<String, String>,
}

impl IndexPins {
    /// Creates the records in the state directory, whose path must be absolute.
    pub fn new(state: &Path) -> Self {
        Self { state: SharedState::new(state, "indexes") }
    }

    /// Returns the recorded digest of an index.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the file cannot be read, or another user could have written it.
    pub fn find(&self, reference: &str) -> Result<Option<String>, StateError> {
        let Some(directory) = self.state.find()? else { return Ok(None) };
        let content: Option<Content> = files::read(&directory.join(FILE), FILE_BYTES)?;
        Ok(content.and_then(|mut content| content.digests.remove(reference)))
    }

    /// Records the digest of an index.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the file cannot be read or written.
    pub fn record(&self, reference: &str, digest: &str) -> Result<(), StateError> {
        let directory = self.state.make()?;
        let _lock = files::lock(directory)?;
        let path = directory.join(FILE);
        let mut content: Content = files::read(&path, FILE_BYTES)?.unwrap_or_default();
        content.digests.insert(reference.to_owned(), digest.to_owned());
        files::write(&path, &content)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn digests_are_recorded_by_reference() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let pins = IndexPins::new(&state);
        assert_eq!(pins.find("oci://a/b:1").unwrap(), None);
        pins.record("oci://a/b:1", "sha256:1").unwrap();
        pins.record("oci://a/b:2", "sha256:2").unwrap();
        pins.record("oci://a/b:1", "sha256:3").unwrap();
        assert_eq!(pins.find("oci://a/b:1").unwrap().as_deref(), Some("sha256:3"));
        assert_eq!(pins.find("oci://a/b:2").unwrap().as_deref(), Some("sha256:2"));
        // A file that another user could have written is not used.
        let file = state.join("indexes").join(FILE);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(pins.find("oci://a/b:1").is_err());
        assert!(pins.record("oci://a/b:1", "sha256:4").is_err());
    }
}
