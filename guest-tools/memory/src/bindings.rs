//! Bindings of `wasi:keyvalue`.

wit_bindgen::generate!({ world: "imports", path: "../keep/wit" });
