//! `kitbag config`.

use std::collections::{HashMap, HashSet};

use kitbag::Config;
use kitbag::base::text::{printable, shown};
use kitbag::config::{Origin, Row, json_schema_text};
use serde_json::json;

use crate::commands::{Global, built};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag config --show
  kitbag config --show --all --json
  kitbag config --schema > config.schema.json")]
pub(crate) struct Args {
    #[command(flatten)]
    what: What,
    /// Include the values of built-in tools
    #[arg(long, conflicts_with = "schema")]
    all: bool,
}

// Chooses between the two views. No doc comment: clap would use it as the command's help.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Print the values in effect, each with its source; without --all, those of built-in tools are
    /// omitted
    #[arg(long)]
    show: bool,
    /// Print the JSON Schema of config.toml, for editors
    #[arg(long)]
    schema: bool,
}

/// Returns the keys whose values come from built-in tools without configuration: their declarations
/// and the limits of every tool.
fn brought_along(config: &Config, rows: &[Row]) -> HashSet<String> {
    let builtins = config.tools.iter().filter(|(_, tool)| tool.toolset.is_some());
    let builtins: HashSet<_> = builtins.map(|(name, _)| name.as_str()).collect();
    let common: HashMap<_, _> = rows.iter().map(|row| (&*row.key, &row.origin)).collect();
    let is_brought = |row: &&Row| {
        let Some((name, rest)) = row.key.strip_prefix("tools.").and_then(|key| key.split_once('.'))
        else {
            return false;
        };
        let is_own = matches!(row.origin, Origin::Default | Origin::Tool);
        builtins.contains(name) && (is_own || common.get(rest) == Some(&&row.origin))
    };
    rows.iter().filter(is_brought).map(|row| row.key.clone()).collect()
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        if self.what.schema {
            output::data(&json_schema_text())?;
            return Ok(Exit::Done);
        }
        // Shows the effective values, even if the user config has mistakes.
        let kitbag = built(global.builder().isolate_own())?;
        let config = &kitbag.toolbox().settled_config();
        // Every command reports the keys that were likely mistyped.
        for absent in config.absent.iter().filter(|absent| absent.hint.is_none()) {
            output::warn(&absent.to_string());
        }
        let mut rows = config.rows();
        let all = rows.len();
        if !self.all {
            let brought = brought_along(config, &rows);
            rows.retain(|row| !brought.contains(&row.key));
        }
        if global.json {
            let row = |row: &Row| json!({ "key": row.key, "value": row.value, "origin": row.origin.to_string() });
            output::json(&json!(rows.iter().map(row).collect::<Vec<_>>()))?;
        } else {
            // As TOML with dotted keys, so that a line can be copied into a file.
            let line = |row: &Row| {
                let (key, value) = (shown(&row.key), row.value.to_string());
                format!("{key} = {}  # {}\n", printable(&value), row.origin)
            };
            output::data(&rows.iter().map(line).collect::<String>())?;
            if rows.len() < all {
                let left_out = all - rows.len();
                output::note(&format!(
                    "{left_out} default values of built-in tools are omitted; `--all` shows them"
                ));
            }
        }
        let is_wrong = config.broken.iter().any(|broken| broken.is_own);
        Ok(if is_wrong { Exit::Configuration } else { Exit::Done })
    }
}
