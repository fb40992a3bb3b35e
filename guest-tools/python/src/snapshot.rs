//! The function that kitbag's build runs once: its memory becomes the data of the component.

#![expect(unsafe_code, reason = "generated bindings, and functions of wasi-libc")]
#![allow(missing_docs)]

struct Snapshot;

wit_bindgen::generate!({
    inline: "package kitbag:snapshot; world snapshot { export initialize: func(); }",
});

export!(Snapshot);

impl Guest for Snapshot {
    fn initialize() {
        crate::interpreter::initialize();
        forget_system();
    }
}

mod libc {
    unsafe extern "C" {
        pub(super) safe fn __wasilibc_reset_preopens();
        pub(super) safe fn __wasilibc_deinitialize_environ();
    }
}

/// Forgets the directories and the environment: each call has its own.
fn forget_system() {
    libc::__wasilibc_reset_preopens();
    libc::__wasilibc_deinitialize_environ();
}
