//! How much of the stack a filter takes.

use std::cell::Cell;

/// How much of the stack calls may take, in bytes: half of what a component has, which is some 170
/// calls within each other. The host's own stack (512 KiB) holds some 270 of them. Without
/// optimisation they take more.
const MOST_BYTES: usize = if cfg!(target_family = "wasm") { 512 << 10 } else { 1 << 20 };

thread_local! {
    /// The address of the stack when the filter began.
    static BEGIN: Cell<usize> = const { Cell::new(0) };
}

/// The address of the stack.
fn position() -> usize {
    let here = 0_u8;
    std::hint::black_box(std::ptr::from_ref(&here).addr())
}

/// Takes the stack as it is for the beginning.
pub(super) fn begin() {
    BEGIN.set(position());
}

/// Whether calls have taken so much of the stack that no other may follow.
pub(super) fn is_used_up() -> bool {
    BEGIN.get().abs_diff(position()) > MOST_BYTES
}
