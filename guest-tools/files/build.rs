//! Reserves initial memory for the tools, so that a call that reads a small file grows no memory.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "wasm32") {
        println!("cargo::rustc-link-arg-cdylib=--initial-heap=262144");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
