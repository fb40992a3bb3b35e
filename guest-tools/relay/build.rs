//! Memory that the tool has from its start, so that a benchmark of its calls is not one of
//! memory that grows.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "wasm32") {
        println!("cargo::rustc-link-arg-cdylib=--initial-heap=2097152");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
