//! Secrets of a call: sources of values, placeholders for guests, additions to requests, redaction
//! of responses, and masks for text that looks like a key or token.
//!
//! `kitbag-policy` decides on destinations, and other crates open connections: this crate works on
//! requests as plain text and bytes.

mod call;
mod call_end;
mod chars;
mod command;
mod encodings;
mod fingerprint;
mod key_body;
mod leak_forms;
mod leak_rules;
mod leaks;
mod markdown_escapes;
mod parts;
mod placeholder;
mod prefixes;
mod read_error;
mod redact;
mod request;
mod secrets;
mod source;
#[cfg(feature = "store")]
pub mod store;
mod sys;
mod value;

pub use call::{CallSecrets, PreparedRequest};
pub use call_end::{AtEnd, CallEnd};
pub use command::{COMMAND_TIME, read_command};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use leak_rules::{MASK_START, OnAnswer, OnRequest};
pub use leaks::{AllowedLeak, Leak, Leaks};
pub use placeholder::Placeholder;
pub use read_error::ReadError;
pub use redact::{MASK, RedactionFilter, Redactor};
pub use request::{PlainRequest, RequestPart, SecretRefusal};
pub use secrets::Secrets;
pub use source::{ReadSecret, Sources, read_variable};
pub use value::{SecretValue, ValueError};
