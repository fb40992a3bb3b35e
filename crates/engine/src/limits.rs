//! The fixed limits of components and of engines.

use std::path::Path;

use kitbag_base::ByteSize;

use crate::load_error::LoadError;

/// The largest component that is compiled.
pub const COMPONENT_BYTES: ByteSize = ByteSize::mib(128);

/// The guest's stack, wasmtime's default.
pub const STACK_BYTES: usize = 512 << 10;

/// Core instances of one component. A component from Rust has three; one from Python, whose parts
/// are linked as shared libraries, has a few dozen.
pub const INSTANCES: usize = 256;

/// Refuses a component that is too large.
pub(crate) fn check_size(path: &Path, size: u64) -> Result<(), LoadError> {
    if size <= COMPONENT_BYTES.as_u64() {
        return Ok(());
    }
    let (path, size) = (path.to_owned(), ByteSize::bytes(size));
    Err(LoadError::TooLarge { path, size, limit: COMPONENT_BYTES })
}
