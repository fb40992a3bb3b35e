//! The source bytes of a component.

use std::path::Path;

use kitbag_base::ContentDigest;
use kitbag_contract::Pin;

use crate::artifact::EmbeddedArtifact;
use crate::cache::digest_of_bytes;
use crate::component_file::OpenComponent;
use crate::load_error::LoadError;

/// The source bytes of a component.
pub trait Content {
    /// Returns the path for messages.
    fn path(&self) -> &Path;

    /// Returns the digest of the bytes.
    fn digest(&mut self) -> Result<ContentDigest, LoadError>;

    /// Returns the bytes. A file may have changed since [`digest`](Self::digest).
    fn read(&mut self) -> Result<Vec<u8>, LoadError>;

    /// Returns the expected digests. Default: any content.
    fn pins(&self) -> &[Pin] {
        &[]
    }
}

impl Content for OpenComponent<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn digest(&mut self) -> Result<ContentDigest, LoadError> {
        Self::digest(self)
    }

    fn read(&mut self) -> Result<Vec<u8>, LoadError> {
        Self::read(self)
    }

    fn pins(&self) -> &[Pin] {
        self.pins
    }
}

impl Content for EmbeddedArtifact {
    fn path(&self) -> &Path {
        Path::new(self.name())
    }

    fn digest(&mut self) -> Result<ContentDigest, LoadError> {
        Ok(digest_of_bytes(&self.component()))
    }

    fn read(&mut self) -> Result<Vec<u8>, LoadError> {
        Ok(self.component())
    }
}

/// Refuses a component whose digest differs from its pins.
pub fn check_pins(path: &Path, pins: &[Pin], found: ContentDigest) -> Result<(), LoadError> {
    match pins.iter().find(|pin| pin.digest != found) {
        None => Ok(()),
        Some(pin) => {
            let (path, pin) = (path.to_owned(), Box::new(pin.clone()));
            Err(LoadError::Pinned { path, found, pin })
        }
    }
}
