//! `kitbag list`.

use kitbag::contract::text::shown;
use serde_json::json;

use crate::commands::{Global, Limits};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag list --json")]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(Limits::default())?;
        let summaries = kitbag.toolbox().summaries();
        if global.json {
            let tools: Vec<_> = summaries
                .map(|tool| {
                    json!({ "name": tool.name, "source": tool.source, "description": tool.description })
                })
                .collect();
            output::json(&json!(tools))?;
        } else {
            let row = |tool: kitbag::Summary| {
                let description = tool.description.unwrap_or_default();
                vec![
                    tool.name.to_string(),
                    shown(&tool.source).to_string(),
                    shown(first_sentence(&description)).to_string(),
                ]
            };
            output::table(&summaries.map(row).collect::<Vec<_>>())?;
        }
        Ok(Exit::Done)
    }
}

/// As much of a description as fits beside a name: its first sentence.
fn first_sentence(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.split_once(". ").map_or(line, |(sentence, _)| sentence).trim_end_matches('.')
}
