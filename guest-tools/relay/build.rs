//! Reserves initial memory for the tool, so that a benchmark of its calls does not measure memory
//! growth.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "wasm32") {
        println!("cargo::rustc-link-arg-cdylib=--initial-heap=2097152");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
