//! JSON pointers (RFC 6901).

/// A key as one segment of a JSON pointer (RFC 6901).
pub(crate) fn pointer(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}
