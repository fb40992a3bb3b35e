//! The stack that a filter uses.

use std::cell::Cell;

/// Maximum stack for calls in bytes: half of a component's stack, or about 170 nested calls. The
/// host's own stack (512 KiB) allows about 270. Without optimization calls use more stack.
const MOST_BYTES: usize = if cfg!(target_family = "wasm") { 512 << 10 } else { 1 << 20 };

thread_local! {
    /// The address of the stack when the filter began.
    static BEGIN: Cell<usize> = const { Cell::new(0) };
}

/// Returns the current address of the stack.
fn position() -> usize {
    let here = 0_u8;
    std::hint::black_box(std::ptr::from_ref(&here).addr())
}

/// Records the current stack position as the start of a filter.
pub(super) fn begin() {
    BEGIN.set(position());
}

/// Returns true if no further nested call fits on the stack.
pub(super) fn is_used_up() -> bool {
    BEGIN.get().abs_diff(position()) > MOST_BYTES
}
