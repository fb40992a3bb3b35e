//! Secrets of a call: where their values come from, the placeholders that a guest gets
//! instead, what is added to a request, redaction of what comes back, and what looks like
//! a key or token that leaves.
//!
//! What may go where is decided in `kitbag-policy`, and connections are opened elsewhere:
//! this crate is handed a request as plain text and bytes.

mod encodings;
mod leaks;
mod redact;
mod value;

pub use leaks::{AllowedLeak, Leak, Leaks, OnAnswer, OnRequest};
pub use redact::{MASK, RedactionFilter, Redactor};
pub use value::{SecretValue, ValueError};
