//! An entry of the cache: its layout and its verification.
//!
//! The artifact comes first, in the form that wasmtime maps. It is followed by the description or
//! its problem, as JSON, and the trailer: the length of the description, the digest of the
//! artifact, the digest of the key and of everything except the artifact, and the magic. So the
//! description can be read without the artifact.

use std::fs::File;

use blake3::{Hash, Hasher};
use memmap2::{Mmap, MmapOptions};

use super::key::Key;
use crate::description::DescribeResult;

/// The end of an entry: its type and the version of its layout.
const MAGIC: &[u8; 8] = b"kitbag\x00\x02";

/// The length of the description, the two digests and the magic.
#[cfg(test)]
pub(super) const TRAILER: usize = 8 + 2 * blake3::OUT_LEN + MAGIC.len();

/// The reason for an entry that fails verification.
const DAMAGED: &str = "damaged";

/// An entry whose description has been verified.
pub struct VerifiedEntry {
    file: File,
    map: Mmap,
    artifact_length: usize,
    artifact_digest: Hash,
    /// The description of the component.
    pub described: DescribeResult,
}

/// Native code that has been verified; see [`VerifiedEntry::artifact`].
pub struct VerifiedCode<'a> {
    file: &'a File,
    bytes: &'a [u8],
}

/// Returns the part of an entry after the artifact.
pub(super) fn after(key: Key, artifact: &[u8], described: &DescribeResult) -> Vec<u8> {
    let mut bytes = described.to_bytes();
    let length = (bytes.len() as u64).to_le_bytes();
    bytes.extend(length);
    bytes.extend(blake3::hash(artifact).as_bytes());
    let digest = digest(key, &bytes);
    bytes.extend(digest.as_bytes());
    bytes.extend(MAGIC);
    bytes
}

/// Returns the digest of the part after the artifact, up to the digest itself.
fn digest(key: Key, bytes: &[u8]) -> Hash {
    Hasher::new().update(&key.0).update(bytes).finalize()
}

impl VerifiedEntry {
    /// Maps a private file and verifies its description.
    ///
    /// # Errors
    ///
    /// The problem of the entry.
    pub(super) fn open(key: Key, file: File) -> Result<Self, String> {
        let map = map(&file).map_err(|error| format!("unreadable ({error})"))?;
        let (artifact_length, artifact_digest, described) = take_apart(key, &map).ok_or(DAMAGED)?;
        Ok(Self { file, map, artifact_length, artifact_digest, described })
    }

    /// Verifies and returns the native code, which may be loaded.
    ///
    /// # Errors
    ///
    /// The problem of the entry.
    pub fn artifact(&self) -> Result<VerifiedCode<'_>, String> {
        let bytes = &self.map[..self.artifact_length];
        match blake3::hash(bytes) == self.artifact_digest {
            true => Ok(VerifiedCode { file: &self.file, bytes }),
            false => Err(DAMAGED.into()),
        }
    }
}

impl VerifiedCode<'_> {
    /// Returns the native code.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Returns the file that starts with the native code.
    pub fn file(&self) -> &File {
        self.file
    }
}

/// Checks an entry against its key and its own digest: the length and digest of the artifact, and
/// the description.
fn take_apart(key: Key, bytes: &[u8]) -> Option<(usize, Hash, DescribeResult)> {
    let (rest, magic) = bytes.split_last_chunk()?;
    let (rest, recorded) = rest.split_last_chunk()?;
    let (before, artifact_digest) = rest.split_last_chunk()?;
    let (before, length) = before.split_last_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let artifact_length = before.len().checked_sub(length)?;
    if magic != MAGIC || digest(key, &rest[artifact_length..]) != Hash::from_bytes(*recorded) {
        return None;
    }
    let described = DescribeResult::from_bytes(&before[artifact_length..])?;
    Some((artifact_length, Hash::from_bytes(*artifact_digest), described))
}

/// Maps a private file of the cache directory.
#[expect(unsafe_code, reason = "mapping what is verified and then loaded as native code")]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the file is not changed or truncated while it is mapped. It is in a directory that
    // only we may enter, belongs to us, has no other name, and is not writable for other users; no
    // tool can change files in the cache under any name. We write files completely under another
    // name and rename them; a process that has a replaced or removed entry open keeps the old file.
    // Another program of the same user could violate this; it could as well write an entry that
    // passes verification, since the digest contains no secret, or modify this process.
    unsafe { MmapOptions::new().map_copy_read_only(file) }
}
