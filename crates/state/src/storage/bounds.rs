//! What is stored and asked for at most, whatever is granted.

/// The longest key, in bytes.
pub const KEY_BYTES: usize = 1024;

/// The most keys that one use names or gets.
pub const ANSWER_KEYS: usize = 10_000;
