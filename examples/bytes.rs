//! A program that provides a tool as the bytes of its component, for example embedded with
//! `include_bytes!`. Run it with `cargo run --example bytes -- path/to/component.wasm`.

use kitbag::Kitbag;
use serde_json::json;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("name the file of a component")?;
    let component = std::fs::read(path)?;
    let builder = Kitbag::builder().workspace(env!("CARGO_MANIFEST_DIR"));
    // The tool's grants are in the workspace's configuration, under `[tools.mine]`.
    let kitbag = builder.component("mine", component).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let outcome = runtime.block_on(kitbag.call("mine", json!({ "text": "hello" })))?;
    println!("{outcome:?}");
    Ok(())
}
