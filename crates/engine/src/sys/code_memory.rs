//! Executable memory that is used in place.
//!
//! An embedded artifact is in the read-only data of the binary, and wasmtime can use it there only
//! if the embedder makes its text executable. This saves copying every built-in at every start.

use std::ffi::c_void;

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::CustomCodeMemory;

/// Switches page protections with `mprotect`.
pub(crate) struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        // The page size of x86-64, the only processor on which this is used: querying it takes a
        // system call.
        4096
    }

    fn publish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        protect(ptr, len, MprotectFlags::READ | MprotectFlags::EXEC)
    }

    fn unpublish_executable(&self, ptr: *const u8, len: usize) -> wasmtime::Result<()> {
        // Read-only and not writable: every engine of the process shares an embedded artifact, and
        // wasmtime unmaps its own mappings right after this.
        protect(ptr, len, MprotectFlags::READ)
    }
}

#[expect(unsafe_code, reason = "publishing the text of a verified artifact")]
fn protect(ptr: *const u8, len: usize, flags: MprotectFlags) -> wasmtime::Result<()> {
    // SAFETY: wasmtime passes the page-aligned text range of an artifact that it has just parsed
    // and keeps borrowed: either the read-only data of this binary or its own mapping. No `&mut`
    // into it exists, and no flag here makes it writable.
    unsafe { mprotect(ptr.cast_mut().cast::<c_void>(), len, flags) }?;
    Ok(())
}
