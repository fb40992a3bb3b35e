//! Descriptions of components, cached separately from their native code.
//!
//! Native code is useless to another version of kitbag or with other engine settings, but
//! descriptions are not. The file is named by the digest of the component and contains the
//! description as JSON, a digest of the description and of the component's digest, and the magic.
//! Nothing in it is executed.

use std::fs::File;
use std::io::Read;

use blake3::{Hash, Hasher};
use kitbag_base::ContentDigest;
use kitbag_base::json::JsonBudget;

use super::key::is_digest;
use crate::description::DescribeResult;

/// The extension of the file.
const EXTENSION: &str = ".description";

/// The end of the file: its type and the version of its content. A version that reads more from a
/// description needs another number.
const MAGIC: &[u8; 8] = b"kitbag\x01\x01";

/// Maximum size of the file. JSON may be longer than the component's own text of the description.
const BYTES: usize = 4 * JsonBudget::DESCRIPTION.bytes;

pub(super) fn file_name(component: ContentDigest) -> String {
    format!("{component}{EXTENSION}")
}

/// Returns true if a file of the cache directory has the name of a description.
pub(super) fn is_description(name: &str) -> bool {
    name.strip_suffix(EXTENSION).is_some_and(is_digest)
}

/// Returns the content of the file. `None` if there is nothing to cache.
pub(super) fn content(component: ContentDigest, described: &DescribeResult) -> Option<Vec<u8>> {
    described.description()?;
    let mut bytes = described.to_bytes();
    let digest = digest(component, &bytes);
    bytes.extend(digest.as_bytes());
    bytes.extend(MAGIC);
    (bytes.len() <= BYTES).then_some(bytes)
}

/// Reads a private file. `None` if its content was modified.
pub(super) fn read(component: ContentDigest, file: File) -> Option<DescribeResult> {
    let mut content = Vec::new();
    file.take(BYTES as u64 + 1).read_to_end(&mut content).ok()?;
    let (rest, magic) = content.split_last_chunk()?;
    let (bytes, recorded) = rest.split_last_chunk()?;
    if magic != MAGIC || digest(component, bytes) != Hash::from_bytes(*recorded) {
        return None;
    }
    DescribeResult::from_bytes(bytes)
}

fn digest(component: ContentDigest, bytes: &[u8]) -> Hash {
    Hasher::new().update(&component.0).update(bytes).finalize()
}
