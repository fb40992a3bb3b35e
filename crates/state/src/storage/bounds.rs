//! Limits of storage that apply to every grant.

/// The longest key, in bytes.
pub const KEY_BYTES: usize = 1024;

/// Maximum number of keys that one operation may name or return.
pub const ANSWER_KEYS: usize = 10_000;
