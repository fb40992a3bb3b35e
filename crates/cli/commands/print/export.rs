//! `kitbag export`.

use clap::ValueEnum;
use kitbag::base::shell;
use kitbag::toolbox::definitions::Format;

use crate::commands::{Global, LimitArgs, warn, warn_description};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag export --format openai-chat > tools.json
  kitbag export --format anthropic learn word_count")]
pub(crate) struct Args {
    /// The names of the tools, as `kitbag list` shows them [default: all tools]
    #[arg(value_name = "TOOL")]
    tools: Vec<String>,
    /// The format of the definitions
    #[arg(long, value_enum)]
    format: FormatName,
}

/// A [`Format`], as it is named on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// OpenAI chat completions, and compatible APIs
    #[value(name = "openai-chat")]
    OpenAiChat,
    /// OpenAI responses
    #[value(name = "openai-responses")]
    OpenAiResponses,
    /// Anthropic messages
    Anthropic,
    /// Gemini
    Gemini,
    /// The result of `tools/list` in the Model Context Protocol
    Mcp,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let (toolbox, format) = (kitbag.toolbox(), self.format.into());
        let definitions = match &*self.tools {
            [] => toolbox.definitions(format)?,
            names => toolbox.definitions_of(names.iter().map(String::as_str), format)?,
        };
        warn(&definitions.cache_problems);
        for (tool, problem) in &definitions.description_problems {
            warn_description(tool.as_str(), problem);
        }
        output::json(&definitions.value)?;
        for (tool, reason) in &definitions.left_out {
            output::warn(&format!("`{tool}` is omitted: {reason}"));
        }
        // The schema changes of built-in tools are known and not relevant to the user.
        let is_builtin = |tool: &str| {
            toolbox.config().tools.get(tool).is_some_and(|tool| tool.toolset.is_some())
        };
        let is_counted = |tool: &str| self.tools.is_empty() && is_builtin(tool);
        let (counted, losses): (Vec<_>, Vec<_>) =
            definitions.losses.iter().partition(|loss| is_counted(loss.tool.as_str()));
        for loss in losses {
            output::warn(&loss.to_string());
        }
        if !counted.is_empty() {
            let number = counted.len();
            let command = shell::command(["kitbag", "export", counted[0].tool.as_str()]);
            output::note(&format!(
                "the schemas of built-in tools differ in {number} ways in this format; `{command} \
                 …` shows those of a tool"
            ));
        }
        Ok(Exit::Done)
    }
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::OpenAiChat => Self::OpenAiChat,
            FormatName::OpenAiResponses => Self::OpenAiResponses,
            FormatName::Anthropic => Self::Anthropic,
            FormatName::Gemini => Self::Gemini,
            FormatName::Mcp => Self::Mcp,
        }
    }
}
