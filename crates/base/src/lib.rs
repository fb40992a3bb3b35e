//! Building blocks that every crate of kitbag uses: text for terminals, strict JSON, sizes,
//! digests and quoting for shells. They know nothing of tools.

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
