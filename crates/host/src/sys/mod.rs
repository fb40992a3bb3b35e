//! Platform-specific code, in addition to `kitbag_fs_guard::sys`: files relative to a directory
//! handle, file modes, thread priority and thread wake-up. The rest of this crate makes no direct
//! system calls.
//!
//! Everything here works on any Unix, except for Linux-specific parts, which are tested on Linux.

mod files;
mod mode;
mod thread;
mod wake;

pub(crate) use files::{Access, disk_full, open_or_create_at};
pub(crate) use mode::copy_permissions;
pub use thread::lower_thread_priority;
#[cfg(test)]
pub(crate) use thread::thread_niceness;
pub(crate) use wake::{Handle, Wake};
