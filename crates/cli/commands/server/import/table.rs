//! The tables of imported servers in a configuration.

use kitbag::config::Layer;
use kitbag::policy::SecretName;
use toml_edit::{DocumentMut, Item, Table};

use super::plan::PlannedServer;
use crate::commands::consent::add::table::{self, ServerTable};
use crate::commands::data::secret::edit;
use crate::error::CliError;
use crate::files::tables;

/// Returns a configuration with the servers of this layer at its end.
pub(super) fn with_servers(
    text: &str,
    servers: &[PlannedServer],
    layer: Layer,
    origin: &str,
) -> Result<String, CliError> {
    let mut text = text.to_owned();
    for server in servers.iter().filter(|it| it.layer == layer && !it.is_present) {
        let table = ServerTable {
            name: server.name.clone(),
            origin: origin.to_owned(),
            keys: server.keys.clone(),
        };
        text = table.add_to(&text, false).map_err(|error| failed(&error))?;
        if !server.excluded.is_empty() {
            text = without_tools(&text, server)?;
        }
    }
    Ok(text)
}

/// Turns off the tools that the client does not offer.
fn without_tools(text: &str, server: &PlannedServer) -> Result<String, CliError> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| failed(&error))?;
    let tools = tables::table(document.as_table_mut(), "tools", true);
    let tools = tools.map_err(|error| failed(&error))?;
    for tool in &server.excluded {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let tool: String = tool.chars().map(|c| if fits(c) { c } else { '_' }).collect();
        let name = format!("{}_{tool}", server.name);
        if tools.get(&name).is_none() {
            let mut table = Table::new();
            table.insert("enable", Item::Value(false.into()));
            tools.insert(&name, Item::Table(table));
        }
    }
    Ok(document.to_string())
}

/// Returns a configuration without servers, secrets and tools.
pub(super) fn without(
    text: &str,
    servers: &[String],
    secrets: &[String],
    tools: &[String],
) -> Result<String, CliError> {
    let mut left = text.to_owned();
    for name in servers {
        let without = table::without_server(&left, name).map_err(|error| failed(&error))?;
        left = without.unwrap_or(left);
    }
    for name in secrets {
        let name = SecretName::new(name.as_str()).map_err(|error| failed(&error))?;
        let without = edit::without(&left, &name).map_err(|error| failed(&error))?;
        left = without.unwrap_or(left);
    }
    for name in tools {
        let without = table::without(&left, name).map_err(|error| failed(&error))?;
        left = without.unwrap_or(left);
    }
    // The gap above a removed table.
    let start = if text.starts_with('\n') { &*left } else { left.trim_start_matches('\n') };
    Ok(start.to_owned())
}

/// Returns the tables of tools that `after` has in addition.
pub(super) fn new_tools<'a>(
    before: &str,
    after: &str,
    servers: impl Iterator<Item = &'a PlannedServer>,
) -> Vec<String> {
    let names = |text: &str| {
        let document = text.parse::<DocumentMut>().ok();
        let tools = document.as_ref().and_then(|it| it.get("tools")?.as_table_like());
        tools.map(|it| it.iter().map(|(key, _)| key.to_owned()).collect()).unwrap_or_default()
    };
    let (before, after): (Vec<String>, Vec<String>) = (names(before), names(after));
    let prefixes: Vec<_> = servers.map(|server| format!("{}_", server.name)).collect();
    let is_new = |name: &String| {
        !before.contains(name) && prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    after.into_iter().filter(is_new).collect()
}

fn failed(error: &dyn std::fmt::Display) -> CliError {
    CliError::Usage(error.to_string())
}
