//! The names of cache files.

use std::fmt;
use std::io::{self, Read};

use blake3::Hasher;
use kitbag_base::ContentDigest;

use super::private::is_partial;
use crate::engines::SETTINGS;
use crate::metering::Metering;
use crate::model::Model;

/// The extension of an entry.
pub(super) const EXTENSION: &str = ".kitbag";

/// The key of an entry: a component and an engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub(super) [u8; 32]);

/// Returns the digest and the length of a component's content.
///
/// # Errors
///
/// If the content cannot be read.
pub(crate) fn digest_of(content: impl Read) -> io::Result<(ContentDigest, u64)> {
    let mut hasher = Hasher::new();
    hasher.update_reader(content)?;
    Ok((ContentDigest(*hasher.finalize().as_bytes()), hasher.count()))
}

/// Returns the digest of content in memory.
pub fn digest_of_bytes(content: &[u8]) -> ContentDigest {
    ContentDigest(*blake3::hash(content).as_bytes())
}

impl Key {
    /// Returns the key of a component.
    pub fn of(component: ContentDigest, metering: Metering, model: Model) -> Self {
        let mut hasher = Hasher::new();
        for part in [
            env!("CARGO_PKG_VERSION"),
            SETTINGS,
            match metering {
                Metering::Off => "",
                Metering::Fuel => "fuel",
            },
            match model {
                Model::Basic => "",
                Model::Async => "async",
            },
            std::env::consts::ARCH,
            std::env::consts::OS,
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.update(&component.0);
        Self(*hasher.finalize().as_bytes())
    }

    /// Returns the key of a complete entry with this name.
    pub(super) fn of_file_name(name: &str) -> Option<Self> {
        let digest: ContentDigest = name.strip_suffix(EXTENSION)?.parse().ok()?;
        Some(Self(digest.0))
    }

    pub(super) fn file_name(self) -> String {
        format!("{self}{EXTENSION}")
    }
}

/// Returns true if a string has the form of a digest or key.
pub(super) fn is_digest(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 64 && text.bytes().all(is_digit)
}

/// Returns true if a file of the cache directory has the name of a complete entry.
pub(super) fn names_entry(name: &str) -> bool {
    name.strip_suffix(EXTENSION).is_some_and(is_digest)
}

/// Returns true if a file of the directory is an entry, complete or not.
pub(super) fn is_entry(name: &str) -> bool {
    names_entry(name) || is_partial(name)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ContentDigest(self.0).fmt(f)
    }
}
