//! A component in the caller's memory.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use kitbag_base::ContentDigest;

use crate::cache::digest_of_bytes;
use crate::content::Content;
use crate::limits::check_size;
use crate::load_error::LoadError;

/// The bytes of a component that the caller trusts.
///
/// Cheap to clone. Values with equal bytes are equal, even if their names differ.
#[derive(Clone)]
pub struct ComponentBytes {
    name: Arc<str>,
    bytes: Arc<[u8]>,
    digest: ContentDigest,
}

impl ComponentBytes {
    /// Creates a component from bytes. Computes their digest; the bytes are validated at the first
    /// use.
    ///
    /// `name` is used in errors and reports.
    pub fn new(name: impl Into<Arc<str>>, bytes: impl Into<Arc<[u8]>>) -> Self {
        let (name, bytes) = (name.into(), bytes.into());
        let digest = digest_of_bytes(&bytes);
        Self { name, bytes, digest }
    }

    /// Returns the digest of the bytes.
    pub fn digest(&self) -> ContentDigest {
        self.digest
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl Content for ComponentBytes {
    fn path(&self) -> &Path {
        Path::new(&*self.name)
    }

    fn digest(&mut self) -> Result<ContentDigest, LoadError> {
        Ok(self.digest)
    }

    fn read(&mut self) -> Result<Vec<u8>, LoadError> {
        check_size(self.path(), self.size())?;
        Ok(self.bytes.to_vec())
    }
}

impl PartialEq for ComponentBytes {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for ComponentBytes {}

impl Hash for ComponentBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for ComponentBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComponentBytes").field("name", &self.name).finish_non_exhaustive()
    }
}
