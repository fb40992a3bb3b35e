//! An agent that embeds kitbag: it lists the tools of a workspace and calls one. Run it in this
//! repository with `cargo run --example embed`.

use kitbag::{Answer, Kitbag, Outcome};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Works with any executor.
    tokio::runtime::Builder::new_current_thread().build()?.block_on(agent())
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn agent() -> Result<(), Box<dyn std::error::Error>> {
    let kitbag = Kitbag::builder()
        .workspace(env!("CARGO_MANIFEST_DIR"))
        // A tool asks before it acts; this agent answers no to every question.
        .on_question(|_question| async { Some(Answer::Json(false.into())) })
        .build()?;

    for tool in kitbag.toolbox().summaries() {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }

    match kitbag.call("learn", json!({ "topic": "kitbag" })).await? {
        Outcome::Success(content) => println!("{content}"),
        Outcome::Error(error) => println!("the tool says: {}", error.message),
        Outcome::NeedsInput(question) => println!("no answer to: {}", question.text),
    }
    Ok(())
}
