//! `kitbag storage`.

use kitbag::Toolbox;
use kitbag::base::ByteSize;
use kitbag::base::text::shown;
use kitbag::host::{Storage, StorageUsage};
use serde_json::{Value, json};

use crate::commands::{Global, LimitArgs};
use crate::console::consent;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag storage list
  kitbag storage clear notes --yes
  kitbag storage clear memory")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the stores of this workspace, with their sizes and quotas
    List,
    /// Remove all data of a tool in this workspace
    ///
    /// On a terminal it asks first.
    Clear {
        /// The name of the tool in the configuration or in `kitbag storage list`, also of a removed
        /// tool. A toolset such as `memory`, or one of its tools, includes the data of the whole
        /// toolset for all callers
        tool: String,
        /// Remove the data without asking
        #[arg(long)]
        yes: bool,
    },
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let as_json = global.json;
        let toolbox = global.kitbag(LimitArgs::default())?.toolbox();
        let Some(storage) = toolbox.storage() else {
            return Err(CliError::Usage(
                "nothing is stored, because neither `HOME` nor `KITBAG_STATE_DIR` is set".into(),
            ));
        };
        match self.command {
            Command::List => list(toolbox, storage, as_json),
            Command::Clear { tool, yes } => clear(toolbox, storage, &tool, yes, as_json),
        }
    }
}

fn list(toolbox: &Toolbox, storage: &Storage, as_json: bool) -> Result<Exit, CliError> {
    let usages = storage.namespaces()?;
    let tools = &toolbox.config().tools;
    let granted = |name: &str| match name.split_once('/') {
        None => tools.get(name)?.grants.value.storage,
        // Each tool of a component has its own grant. The largest is the maximum size.
        Some((toolset, _)) => {
            let of_toolset = tools.values().filter(|tool| tool.toolset.as_deref() == Some(toolset));
            of_toolset
                .filter_map(|tool| tool.grants.value.storage)
                .max_by_key(|grant| (grant.quota(), grant.keys()))
        }
    };
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
        output::note("the tools of this workspace store nothing");
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

fn clear(
    toolbox: &Toolbox,
    storage: &Storage,
    tool: &str,
    yes: bool,
    as_json: bool,
) -> Result<Exit, CliError> {
    let meant = meant(toolbox, storage, tool)?;
    let is_empty = meant.iter().all(|usage| usage.keys == 0);
    if !is_empty && !yes && !agrees(&meant)? {
        output::note("nothing was removed");
        return Ok(Exit::Question);
    }
    let removed = meant.iter().map(|usage| storage.clear(&usage.tool));
    let removed = removed.collect::<Result<Vec<_>, _>>()?;
    match as_json {
        true => output::json(&described(&total(tool, &removed)))?,
        false => removed.iter().for_each(|usage| output::note(&format!("removed {}", what(usage)))),
    }
    Ok(Exit::Done)
}

/// Resolves a name: the storage's own entry of that name, otherwise the stores of a component's
/// tools.
fn meant(toolbox: &Toolbox, storage: &Storage, name: &str) -> Result<Vec<StorageUsage>, CliError> {
    let mut usages = storage.namespaces()?;
    if usages.iter().any(|usage| usage.tool == name) {
        usages.retain(|usage| usage.tool == name);
        return Ok(usages);
    }
    let toolset = toolbox.config().tools.get(name).and_then(|tool| tool.toolset.as_deref());
    let toolset = toolset.unwrap_or(name);
    usages.retain(|usage| usage.tool.split_once('/').is_some_and(|(of, _)| of == toolset));
    if usages.is_empty() {
        usages.push(storage.usage(name)?);
    }
    Ok(usages)
}

fn total(tool: &str, usages: &[StorageUsage]) -> StorageUsage {
    let bytes: u64 = usages.iter().map(|usage| usage.bytes.as_u64()).sum();
    let keys = usages.iter().map(|usage| usage.keys).sum();
    StorageUsage { tool: tool.to_owned(), keys, bytes: ByteSize::bytes(bytes) }
}

fn what(StorageUsage { tool, keys, bytes }: &StorageUsage) -> String {
    format!("{} of `{}`, {bytes}", counted(*keys), shown(tool))
}

fn agrees(usages: &[StorageUsage]) -> Result<bool, CliError> {
    let what = usages.iter().map(what).collect::<Vec<_>>().join(" and ");
    if !consent::is_interactive(false) {
        return Err(CliError::Usage(format!("this removes {what}; add `--yes` to do so")));
    }
    consent::agrees(&format!("Remove {what}?"))
}

fn described(usage: &StorageUsage) -> Value {
    let StorageUsage { tool, keys, bytes } = usage;
    json!({ "tool": tool, "keys": keys, "bytes": bytes.as_u64() })
}

fn counted(keys: u64) -> String {
    format!("{keys} {}", if keys == 1 { "key" } else { "keys" })
}
