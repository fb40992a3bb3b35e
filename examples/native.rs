//! A program with its own tool, which calls another tool. Run it in this repository with
//! `cargo run --example native`.

use std::pin::Pin;

use kitbag::contract::ToolDescription;
use kitbag::{ErrorInfo, Invocation, Kitbag, NativeCall, NativeTool, Outcome};
use serde_json::json;

/// Counts the lines of the overview that `learn` returns for a topic.
struct CountLines;

impl NativeTool for CountLines {
    fn description(&self) -> ToolDescription {
        ToolDescription {
            name: "count_lines".into(),
            description: Some("Counts the lines of a topic's overview.".into()),
            input_schema: Some(json!({
                "type": "object",
                "properties": { "topic": { "type": "string", "description": "Its id" } },
                "required": ["topic"],
                "additionalProperties": false,
            })),
            ..ToolDescription::default()
        }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        Box::pin(async move {
            let arguments = json!({ "topic": call.arguments()["topic"] });
            match call.call(Invocation::tool("learn", arguments)).await {
                Ok(Outcome::Success(text)) => Outcome::Success(text.lines().count().to_string()),
                Ok(other) => other,
                Err(error) => {
                    Outcome::Error(ErrorInfo { message: error.to_string(), ..ErrorInfo::default() })
                }
            }
        })
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Kitbag::builder().workspace(env!("CARGO_MANIFEST_DIR"));
    let kitbag = builder.tool(CountLines).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    match runtime.block_on(kitbag.call("count_lines", json!({ "topic": "kitbag" })))? {
        Outcome::Success(lines) => println!("{lines} lines"),
        other => println!("{other:?}"),
    }
    Ok(())
}
