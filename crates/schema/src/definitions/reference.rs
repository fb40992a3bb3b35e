//! References within a schema.

use serde_json::Value;

/// Returns the target of a `$ref` within the schema, and its pointer.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<(String, &'a Value)> {
    let pointer = reference.strip_prefix('#')?;
    // References that need decoding are not resolved.
    if pointer.contains('%') {
        return None;
    }
    Some((pointer.to_owned(), root.pointer(pointer)?))
}
