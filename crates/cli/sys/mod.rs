//! Platform-specific code: how many files a process may open, and what
//! the allocator keeps.

#[cfg(feature = "serve")]
mod allocator;
mod open_files;

#[cfg(feature = "serve")]
pub(crate) use allocator::bound_allocator;
pub(crate) use open_files::shortage;
