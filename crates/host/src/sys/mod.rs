//! Platform-specific code, beside that of `kitbag_files::sys`: changes
//! of files by a handle of their directory, the process that compiles, memory that is executed,
//! and what wakes a thread that waits. Nothing else of this crate asks the system in its own
//! terms.
//!
//! Everything here is what every Unix has, but for what differs on Linux, where it is tested.

#[cfg(target_arch = "x86_64")]
mod code_memory;
mod files;
mod mode;
#[cfg(feature = "compiler")]
mod process;
mod thread;
mod wake;

#[cfg(target_arch = "x86_64")]
pub(crate) use code_memory::InPlace;
pub(crate) use files::{
    Access, create_at, disk_full, lock_file_at, open_or_create_at, path_of, remove_at, rename_at,
};
pub(crate) use mode::copy_permissions;
#[cfg(feature = "compiler")]
pub(crate) use process::{
    ExitCause, ProcessLimits, close_inherited, exit_cause, limit_this_process, lower_priority,
    set_nonblocking, set_process_name, wait_for_pipes,
};
pub(crate) use thread::lower_thread_priority;
#[cfg(test)]
pub(crate) use thread::thread_niceness;
pub(crate) use wake::{Handle, Wake};
