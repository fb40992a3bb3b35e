//! Memory that the interpreter has from its start.

fn main() {
    // What a script takes as a rule, so that its memory need not grow: for that, and to take it
    // back, the kernel changes the mapping, which costs more than a short script does. Pages that
    // are not touched cost nothing.
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "wasm32") {
        println!("cargo::rustc-link-arg-cdylib=--initial-heap=2097152");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
