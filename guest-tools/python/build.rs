//! Memory that the interpreter has from its start.

fn main() {
    // The memory of a typical script, so that it need not grow: growing and releasing it change the
    // kernel's mapping, which costs more than a short script. Untouched pages cost nothing.
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "wasm32") {
        println!("cargo::rustc-link-arg-cdylib=--initial-heap=2097152");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
