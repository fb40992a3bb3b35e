//! What a component says of itself, remembered apart from its native code.
//!
//! Native code is of no use to another version of kitbag or with other settings of the
//! engine; what a component says of itself is. The file is named by the digest of the
//! component and holds the description as JSON, a digest of that and of the component's,
//! and the magic. Nothing in it is executed.

use std::fs::File;
use std::io::Read;

use blake3::{Hash, Hasher};
use kitbag_base::ContentDigest;
use kitbag_base::json::JsonBudget;

use super::key::is_digest;
use crate::description::DescribeResult;

/// What the file's name ends in.
const EXTENSION: &str = ".description";

/// What the file ends in: what it is, and the version of what it holds. A version that
/// reads more from a description than this one has another number.
const MAGIC: &[u8; 8] = b"kitbag\x01\x01";

/// The longest file: more than a description has, which may be longer written out than
/// as the component gave it.
const BYTES: usize = 4 * JsonBudget::DESCRIPTION.bytes;

pub(super) fn file_name(component: ContentDigest) -> String {
    format!("{component}{EXTENSION}")
}

/// Whether a file of the cache's directory has the name of one.
pub(super) fn is_description(name: &str) -> bool {
    name.strip_suffix(EXTENSION).is_some_and(is_digest)
}

/// The content of the file. Nothing, where there is nothing to remember.
pub(super) fn content(component: ContentDigest, described: &DescribeResult) -> Option<Vec<u8>> {
    described.description()?;
    let mut bytes = described.to_bytes();
    let digest = digest(component, &bytes);
    bytes.extend(digest.as_bytes());
    bytes.extend(MAGIC);
    (bytes.len() <= BYTES).then_some(bytes)
}

/// Reads a file that is ours alone. Nothing, where it is not what was written there.
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
