//! References within a schema.

use serde_json::Value;

/// Finds what a `$ref` within the schema points to, and the pointer to it.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<(String, &'a Value)> {
    let pointer = reference.strip_prefix('#')?;
    // A reference that would have to be decoded first is left alone.
    if pointer.contains('%') {
        return None;
    }
    Some((pointer.to_owned(), root.pointer(pointer)?))
}
