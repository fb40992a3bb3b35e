//! The fixed limits of components and of engines.

use kitbag_base::ByteSize;

/// The largest component that is compiled.
pub const COMPONENT_BYTES: ByteSize = ByteSize::mib(128);

/// The guest's stack, wasmtime's default.
pub const STACK_BYTES: usize = 512 << 10;

/// Core instances of one component. A component from Rust has three; one from Python, whose parts
/// are linked as shared libraries, has a few dozen.
pub const INSTANCES: usize = 256;
