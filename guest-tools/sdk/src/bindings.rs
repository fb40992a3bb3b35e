//! The contract as Rust sees it: what `wit-bindgen` makes of `wit/`.
//!
//! The only place where the bindings are generated. Tools reach them through
//! [`export!`](crate::export) and the types that the crate's root names.

wit_bindgen::generate!({
    world: "calling-tool",
    path: "../../wit",
    additional_derives: [PartialEq, Eq],
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_tool",
    default_bindings_module: "kitbag_sdk::bindings",
});
