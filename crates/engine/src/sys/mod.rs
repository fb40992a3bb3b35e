//! Platform-specific code, in addition to `kitbag_fs_guard::sys`: files of the cache relative to a
//! directory handle, the compiling process, and executable memory.

#[cfg(target_arch = "x86_64")]
mod code_memory;
mod files;
#[cfg(feature = "compiler")]
mod process;

#[cfg(target_arch = "x86_64")]
pub(crate) use code_memory::InPlace;
pub(crate) use files::{create_at, lock_file_at, path_of, remove_at, rename_at};
#[cfg(feature = "compiler")]
pub(crate) use process::{
    ExitCause, ProcessLimits, close_inherited, exit_cause, limit_this_process, lower_priority,
    set_nonblocking, set_process_name, wait_for_pipes,
};
