//! `kitbag prompt`.

use kitbag::host::Host;
use kitbag::{CallContext, Caller, ToolboxError};
use serde_json::json;

use crate::commands::{Global, LimitArgs, warn_unlogged};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag prompt >> system-prompt.txt")]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let asked = || kitbag.toolbox().knowledge_prompt(CallContext::new(Caller::this_user()));
        let prompt = Host::block_on(asked).map_err(ToolboxError::from).flatten();
        warn_unlogged(kitbag.toolbox());
        let prompt = prompt?;
        match global.json {
            true => output::json(&json!({ "prompt": prompt.text, "problems": prompt.problems }))?,
            false => output::untrusted(&prompt.text)?,
        }
        if !kitbag.toolbox().has_learn() {
            output::note(
                "there is no prompt, because the tool `learn` is off: `kitbag list` shows why",
            );
        } else if prompt.text.is_empty() && prompt.problems.is_empty() {
            output::note(
                "there is no prompt, because no topic is configured; to add one, set `subjects = \
                 \"DIRECTORY\"` under `[knowledge.NAME]` in `.kitbag/config.toml`",
            );
        }
        for problem in &prompt.problems {
            output::warn(problem);
        }
        Ok(Exit::Done)
    }
}
