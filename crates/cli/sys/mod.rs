//! Platform-specific code: limits and features of the system, memory kept by the allocator, and the
//! terminal.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator;
mod open_files;
mod system;
mod terminal;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) use allocator::bound_allocator;
pub(crate) use open_files::shortage;
pub(crate) use system::{file_system, has_openat2, process_limits};
pub(crate) use terminal::{discard_typed, terminal_size};
