//! `kitbag config`.

use kitbag::config::json_schema_text;
use kitbag::contract::text::{printable, shown};
use serde_json::json;

use crate::commands::{Global, Limits};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag config --show
  kitbag config --schema > config.schema.json")]
pub(crate) struct Args {
    #[command(flatten)]
    what: What,
}

// Which of the two. No doc comment, which clap would take for the command's.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Show every value in effect and where it came from
    #[arg(long)]
    show: bool,
    /// Print the JSON Schema of config.toml, for editors
    #[arg(long)]
    schema: bool,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        if self.what.schema {
            output::data(&json_schema_text())?;
            return Ok(Exit::Done);
        }
        let kitbag = global.kitbag(Limits::default())?;
        let rows = kitbag.toolbox().config().rows();
        if global.json {
            let row = |row: &kitbag::config::Row| json!({ "key": row.key, "value": row.value, "origin": row.origin.to_string() });
            output::json(&json!(rows.iter().map(row).collect::<Vec<_>>()))?;
        } else {
            // As TOML with dotted keys, so that a line can be copied into a file.
            let line = |row: &kitbag::config::Row| {
                let (key, value) = (shown(&row.key), row.value.to_string());
                format!("{key} = {}  # {}\n", printable(&value), row.origin)
            };
            output::data(&rows.iter().map(line).collect::<String>())?;
        }
        Ok(Exit::Done)
    }
}
