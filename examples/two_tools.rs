//! Two tools of one component: the built-in `text` contains both `encode_text` and `decode_text`.
//! It is loaded once and has a separate instance for each call. Run it in this repository with
//! `cargo run --example two_tools`.

use kitbag::{Kitbag, Outcome};
use serde_json::json;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kitbag = Kitbag::builder().workspace(env!("CARGO_MANIFEST_DIR")).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let call = |tool, text: &str| {
        let arguments = json!({ "text": text, "encoding": "hex" });
        match runtime.block_on(kitbag.call(tool, arguments))? {
            Outcome::Success(content) => Ok(content.trim_end().to_owned()),
            other => Err(format!("{tool}: {other:?}").into()),
        }
    };
    let encoded: Result<String, Box<dyn std::error::Error>> = call("encode_text", "a bag");
    let encoded = encoded?;
    println!("{encoded}, which is {}", call("decode_text", &encoded)?);
    Ok(())
}
