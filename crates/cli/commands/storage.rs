//! `kitbag storage`.

use std::io::{self, IsTerminal};

use kitbag::Toolbox;
use kitbag::contract::text::shown;
use kitbag::host::{Storage, StorageUsage};
use serde_json::{Value, json};

use crate::commands::{Global, Limits};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag storage list
  kitbag storage clear notes --yes")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List what the tools of this workspace keep, and how much each may
    List,
    /// Remove everything that a tool keeps in this workspace
    ///
    /// At a terminal it asks first.
    Clear {
        /// The tool, by its name in the configuration. It need not be there any more
        tool: String,
        /// Remove it without asking
        #[arg(long)]
        yes: bool,
    },
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let as_json = global.json;
        let toolbox = global.kitbag(Limits::default())?.toolbox();
        let Some(storage) = toolbox.storage() else {
            return Err(CliError::Usage(
                "nothing is kept, since neither `HOME` nor `KITBAG_STATE_DIR` is set".into(),
            ));
        };
        match self.command {
            Command::List => list(toolbox, storage, as_json),
            Command::Clear { tool, yes } => clear(storage, &tool, yes, as_json),
        }
    }
}

fn list(toolbox: &Toolbox, storage: &Storage, as_json: bool) -> Result<Exit, CliError> {
    let usages = storage.namespaces()?;
    let granted = |tool: &str| toolbox.config().tools.get(tool)?.grants.value.storage;
    if as_json {
        let usage = |usage: &StorageUsage| {
            let grant = granted(&usage.tool);
            let mut value = described(usage);
            value["quota"] = grant.map(|grant| grant.quota().as_u64()).into();
            value["mostKeys"] = grant.map(|grant| grant.keys()).into();
            value
        };
        output::json(&usages.iter().map(usage).collect::<Value>())?;
        return Ok(Exit::Done);
    }
    if usages.is_empty() {
        output::note("the tools of this workspace keep nothing");
        return Ok(Exit::Done);
    }
    let row = |usage: &StorageUsage| {
        let StorageUsage { tool, keys, bytes } = usage;
        let of = match granted(tool) {
            Some(grant) => format!("of {}, {} keys", grant.quota(), grant.keys()),
            None => "no storage is granted".to_owned(),
        };
        vec![shown(tool).to_string(), counted(*keys), bytes.to_string(), of]
    };
    output::data(&output::aligned(&usages.iter().map(row).collect::<Vec<_>>()))?;
    Ok(Exit::Done)
}

fn clear(storage: &Storage, tool: &str, yes: bool, as_json: bool) -> Result<Exit, CliError> {
    let usage = storage.usage(tool)?;
    if usage.keys > 0 && !yes && !agrees(&usage)? {
        output::note("nothing was removed");
        return Ok(Exit::Question);
    }
    let removed = storage.clear(tool)?;
    match as_json {
        true => output::json(&described(&removed))?,
        false => output::note(&format!(
            "removed {} of `{}`, {}",
            counted(removed.keys),
            shown(tool),
            removed.bytes
        )),
    }
    Ok(Exit::Done)
}

/// Asks at the terminal.
fn agrees(usage: &StorageUsage) -> Result<bool, CliError> {
    let StorageUsage { tool, keys, bytes } = usage;
    let what = format!("{} of `{}`, {bytes}", counted(*keys), shown(tool));
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(CliError::Usage(format!("this removes {what}; add `--yes` to do so")));
    }
    output::ask(&format!("remove {what}? [y/N] ")).map_err(CliError::Output)?;
    let mut line = String::new();
    let read = |source| CliError::Read { path: "standard input".into(), source };
    io::stdin().read_line(&mut line).map_err(read)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn described(usage: &StorageUsage) -> Value {
    let StorageUsage { tool, keys, bytes } = usage;
    json!({ "tool": tool, "keys": keys, "bytes": bytes.as_u64() })
}

fn counted(keys: u64) -> String {
    format!("{keys} {}", if keys == 1 { "key" } else { "keys" })
}
