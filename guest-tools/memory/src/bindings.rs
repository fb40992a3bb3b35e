//! `wasi:keyvalue` as Rust sees it.

wit_bindgen::generate!({ world: "imports", path: "../keep/wit" });
