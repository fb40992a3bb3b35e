//! An entry of the cache: its layout, and what has to hold before it is used.
//!
//! The artifact comes first and lies in the file as wasmtime maps it. Behind it
//! stand the description or what is wrong with it, as JSON, and the trailer: the length of the description,
//! the digest of the artifact, the digest of the key and of everything that is not
//! the artifact, and the magic. So a description is had without reading the
//! artifact.

use std::fs::File;

use blake3::{Hash, Hasher};
use memmap2::{Mmap, MmapOptions};

use super::key::Key;
use crate::description::DescribeResult;

/// What an entry ends in: what it is, and the version of its layout.
const MAGIC: &[u8; 8] = b"kitbag\x00\x02";

/// The length of the description, the two digests and the magic.
#[cfg(test)]
pub(super) const TRAILER: usize = 8 + 2 * blake3::OUT_LEN + MAGIC.len();

/// What is said of an entry in which something does not fit.
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

/// What stands behind the artifact in an entry.
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

/// The digest of what stands behind the artifact, up to this digest.
fn digest(key: Key, bytes: &[u8]) -> Hash {
    Hasher::new().update(&key.0).update(bytes).finalize()
}

impl VerifiedEntry {
    /// Maps a file that is ours alone, and takes it apart.
    ///
    /// # Errors
    ///
    /// Says what the entry is instead.
    pub(super) fn open(key: Key, file: File) -> Result<Self, String> {
        let map = map(&file).map_err(|error| format!("unreadable ({error})"))?;
        let (artifact_length, artifact_digest, described) = take_apart(key, &map).ok_or(DAMAGED)?;
        Ok(Self { file, map, artifact_length, artifact_digest, described })
    }

    /// The native code, which may be loaded.
    ///
    /// # Errors
    ///
    /// Says what the entry is instead.
    pub fn artifact(&self) -> Result<VerifiedCode<'_>, String> {
        let bytes = &self.map[..self.artifact_length];
        match blake3::hash(bytes) == self.artifact_digest {
            true => Ok(VerifiedCode { file: &self.file, bytes }),
            false => Err(DAMAGED.into()),
        }
    }
}

impl VerifiedCode<'_> {
    /// The native code.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The file that starts with it.
    pub fn file(&self) -> &File {
        self.file
    }
}

/// Checks an entry against its key and its own digest: the length and the digest
/// of the artifact, and the description.
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

/// Maps a file of the cache's directory that is ours alone.
#[expect(unsafe_code, reason = "mapping what is verified and then loaded as native code")]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: nothing changes or shortens the file while it is mapped. It lies in
    // a directory that only we may enter, belongs to us, has no other name, and no
    // other user may write it; no tool changes what is in the cache, by any name. What we write we write under another name, whole, and move here; an entry
    // that is replaced or removed stays what it is for a process that has it open. Another
    // program of the same user could do otherwise; it could as well write an entry
    // that verifies, since the digest holds no secret, or change this process.
    unsafe { MmapOptions::new().map_copy_read_only(file) }
}
