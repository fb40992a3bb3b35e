//! The parts of `std` that a tool needs if it is `no_std`: a memory allocator and a panic handler.
//!
//! `std` imports standard streams, a terminal, the environment and an exit, all of them only to
//! report a panic. Decoding and linking these imports takes a quarter of the start time of a small
//! tool. A tool that uses this crate, and is `no_std` with all of its dependencies, imports only
//! the interfaces that it uses.
//!
//! Memory comes from the C library, as with `std`, and not from an allocator written in Rust: the C
//! library first uses the rest of the initial pages of an instance, so that small calls need no
//! `memory.grow`. The C library also contains the function through which the host allocates memory.

#![cfg_attr(target_family = "wasm", no_std)]
#![cfg(target_family = "wasm")]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::panic::PanicInfo;
use core::ptr;

/// The alignment in bytes of memory returned by `malloc`.
const ALIGNMENT: usize = 16;

/// The C library's memory.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

#[link(name = "c")]
#[expect(unsafe_code, reason = "of the C library")]
unsafe extern "C" {
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn cabi_realloc(
        old: *mut c_void,
        old_size: usize,
        alignment: usize,
        size: usize,
    ) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn malloc(size: usize) -> *mut c_void;
    fn realloc(memory: *mut c_void, size: usize) -> *mut c_void;
}

/// Exported by the C library if a reference to it exists.
#[used]
static REALLOC: unsafe extern "C" fn(*mut c_void, usize, usize, usize) -> *mut c_void =
    cabi_realloc;

// SAFETY: the functions of the C library return unused memory of at least that size, or null;
// `malloc` and `realloc` align it to `ALIGNMENT`, and larger alignments use `aligned_alloc`. These
// functions do not panic.
#[expect(unsafe_code, reason = "an allocator is")]
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the contract of `GlobalAlloc` the size is not zero, and an
        // alignment is a power of two. `aligned_alloc` of this library takes any size.
        let memory = unsafe {
            match layout.align() {
                ..=ALIGNMENT => malloc(layout.size()),
                alignment => aligned_alloc(alignment, layout.size()),
            }
        };
        memory.cast()
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: by the contract of `GlobalAlloc` the memory came from this allocator and is no
        // longer used.
        unsafe { free(memory.cast()) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            // SAFETY: by the contract of `GlobalAlloc` the memory came from this allocator, and the
            // size is not zero.
            return unsafe { realloc(memory.cast(), size) }.cast();
        }
        // SAFETY: as above; the copied length is the shorter of both, which do not overlap since
        // both are allocated at the same time.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(memory, new, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
            new
        }
    }
}

/// Ends the call; the host reports it.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
