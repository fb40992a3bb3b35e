//! Platform-specific code, beside that of `kitbag_fs_guard::sys`: files
//! by a handle of their directory, their modes, the priority of a thread, and what wakes a thread that waits. Nothing else of this crate asks the system in its own
//! terms.
//!
//! Everything here is what every Unix has, but for what differs on Linux, where it is tested.

mod files;
mod mode;
mod thread;
mod wake;

pub(crate) use files::{Access, disk_full, open_or_create_at};
pub(crate) use mode::copy_permissions;
pub(crate) use thread::lower_thread_priority;
#[cfg(test)]
pub(crate) use thread::thread_niceness;
pub(crate) use wake::{Handle, Wake};
