//! Platform-specific code: how many files a process may open, what the allocator keeps, and the
//! terminal.

#[cfg(feature = "serve")]
mod allocator;
mod open_files;
mod terminal;

#[cfg(feature = "serve")]
pub(crate) use allocator::bound_allocator;
pub(crate) use open_files::shortage;
pub(crate) use terminal::{discard_typed, terminal_size};
