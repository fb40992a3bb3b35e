//! Executable memory, changed in place.
//!
//! An embedded artifact lies in the binary's read-only data, and wasmtime can
//! use it there only when the embedder makes its text executable. That saves
//! copying every built-in at every start.

use std::ffi::c_void;

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::CustomCodeMemory;

/// Switches page protections with `mprotect`.
pub(crate) struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        // What x86-64 has, and only there is this used: asking takes a system call.
        4096
    }

    fn publish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        protect(ptr, len, MprotectFlags::READ | MprotectFlags::EXEC)
    }

    fn unpublish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        // Read-only rather than writable: an embedded artifact is shared by
        // every engine of the process, and what wasmtime mapped itself is
        // unmapped right after this.
        protect(ptr, len, MprotectFlags::READ)
    }
}

#[expect(unsafe_code, reason = "publishing the text of an artifact that was verified before")]
fn protect(ptr: *const u8, len: usize, flags: MprotectFlags) -> wasmtime::Result<()> {
    // SAFETY: wasmtime passes the page-aligned text range of an artifact that
    // it has just parsed and that it keeps borrowed: either the read-only data
    // of this binary or a mapping of its own. Nothing holds a `&mut` into it,
    // and no flag here makes it writable.
    unsafe { mprotect(ptr.cast_mut().cast::<c_void>(), len, flags) }?;
    Ok(())
}
