//! Building blocks for every crate of kitbag: text for terminals, strict JSON, sizes, digests and
//! shell quoting. They do not depend on tools.

mod digest;
mod file_id;
pub mod json;
mod quantity;
pub mod shell;
pub mod text;
pub mod wrap;

pub use digest::{ContentDigest, ContentDigestError};
pub use file_id::FileId;
pub use json::{ARGUMENTS_BYTES, ARGUMENTS_DEPTH};
pub use quantity::{
    ByteSize, ParseLimitError, format_duration, parse_duration, parse_fuel, parse_requests,
    parse_tool_calls,
};
