//! `kitbag prompt`.

use kitbag::Cancellation;
use kitbag::contract::text::printable;
use serde_json::json;

use crate::commands::{Global, Limits};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag prompt >> system-prompt.txt")]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(Limits::default())?;
        let prompt = kitbag.toolbox().knowledge_prompt(&Cancellation::default())?;
        match global.json {
            true => output::json(&json!({ "prompt": prompt.text, "problems": prompt.problems }))?,
            false => output::untrusted(&prompt.text)?,
        }
        for problem in &prompt.problems {
            output::note(&format!("warning: {}", printable(problem)));
        }
        Ok(Exit::Done)
    }
}
