//! Files, with what wasmtime-wasi's own do not give.
//!
//! A granted directory is opened once, when the guest asks for it, without links, and checked: that
//! descriptor is the preopen. wasmtime-wasi enforces read-only ones. On top of
//! that a path is walked here, one component after the other (`resolve`), so that
//! nothing of the kernel's own file systems is reached wherever they are mounted,
//! and what a call changes is compared with what no tool changes
//! (`kitbag_fs_guard::Guard`). Only regular files and directories are opened: a FIFO
//! or a device would hold the thread in the kernel, where no deadline reaches it.
//! A directory is read as the guest asks for it; see `listing`.

mod activity;
mod bindings;
mod change;
mod directories;
mod listing;
mod quota;
mod resolve;

pub use self::activity::{FileActivity, PathList};
pub(crate) use self::bindings::GuardedFilesystem;
pub(crate) use self::change::FilesystemView;
pub(crate) use self::directories::CallDirectories;
pub(crate) use self::quota::Quota;
