//! Files, with additional checks before wasmtime-wasi's own implementation.
//!
//! A granted directory is opened once, when the guest asks for it, without following links, and
//! checked; that descriptor is the preopen. wasmtime-wasi enforces read-only directories. In
//! addition, this module walks each path one component at a time (`resolve`), so that the kernel's
//! own file systems cannot be reached wherever they are mounted, and compares each change with the
//! protected files (`kitbag_fs_guard::Guard`). Only regular files and directories are opened: a
//! FIFO or a device would block the thread in the kernel, where the deadline has no effect.
//! Directories are read on demand; see `listing`.

mod activity;
mod asynchronous;
mod bindings;
mod change;
mod directories;
mod listing;
mod quota;
mod resolve;

pub use self::activity::{FileActivity, PathList};
pub(crate) use self::change::FilesystemView;
pub(crate) use self::directories::CallDirectories;
pub(crate) use self::quota::Quota;

use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

use self::bindings::GuardedFilesystem;
use crate::call::state::State;
use crate::interface::{Interfaces, Version};

pub(crate) const INTERFACES: Interfaces = Interfaces::of_wasi(&[
    ("wasi:filesystem/preopens", "granted directories", |l| {
        preopens::add_to_linker::<_, GuardedFilesystem>(l, State::guarded)
    }),
    ("wasi:filesystem/types", "files in granted directories", |l| {
        types::add_to_linker::<_, GuardedFilesystem>(l, State::guarded)
    }),
]);

pub(crate) const ASYNC_INTERFACES: Interfaces = Interfaces {
    version: Version::Wasi3,
    ..Interfaces::of_wasi(&[
        ("wasi:filesystem/preopens", "granted directories", asynchronous::link_preopens),
        ("wasi:filesystem/types", "files in granted directories", asynchronous::link_types),
    ])
};
