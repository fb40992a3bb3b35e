//! Platform-specific code: the limit on open files, memory kept by the allocator, and the terminal.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator;
mod open_files;
mod terminal;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) use allocator::bound_allocator;
pub(crate) use open_files::shortage;
pub(crate) use terminal::{discard_typed, terminal_size};
