//! The tables of imported servers.

use kitbag::config::Layer;
use toml_edit::{DocumentMut, Item, Table};

use super::plan::PlannedServer;
use crate::error::CliError;
use crate::files::tables;

/// Start of the comment above a table that an import wrote.
const MARK: &str = "# Imported from";

/// Larger than the position of any existing table: a file has fewer bytes.
const END: isize = 1 << 30;

/// Returns a configuration with the servers of this layer at its end.
pub(super) fn with_servers(
    text: &str,
    servers: &[PlannedServer],
    layer: Layer,
    origin: &str,
) -> Result<String, CliError> {
    let mut text = text.to_owned();
    for server in servers.iter().filter(|it| it.layer == layer && !it.is_present) {
        text = with_server(&text, server, origin)?;
    }
    Ok(text)
}

fn with_server(text: &str, server: &PlannedServer, origin: &str) -> Result<String, CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::Usage(error.to_string());
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| failed(&error))?;
    let end = document.trailing().as_str().unwrap_or_default().to_owned();
    let is_empty = document.as_table().is_empty() && end.trim().is_empty();
    document.set_trailing("");
    let servers = tables::table(document.as_table_mut(), "servers", true);
    let servers = servers.map_err(|error| failed(&error))?;
    let mut table = Table::new();
    table.set_position(Some(END));
    let gap = if is_empty { "" } else { "\n" };
    table.decor_mut().set_prefix(format!("{end}{gap}{MARK} {origin}.\n"));
    for (key, item) in &server.keys {
        table.insert(key, item.clone());
    }
    servers.insert(&server.name, Item::Table(table));
    if !server.excluded.is_empty() {
        let tools = tables::table(document.as_table_mut(), "tools", true);
        let tools = tools.map_err(|error| failed(&error))?;
        for (number, tool) in (1..).zip(&server.excluded) {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let tool: String = tool.chars().map(|c| if fits(c) { c } else { '_' }).collect();
            let name = format!("{}_{tool}", server.name);
            if tools.get(&name).is_none() {
                let mut table = Table::new();
                table.set_position(Some(END + number));
                table.insert("enable", Item::Value(false.into()));
                tools.insert(&name, Item::Table(table));
            }
        }
    }
    Ok(document.to_string())
}

/// Returns a configuration without tables: `kind` is `servers`, `secrets` or `tools`. Comments above
/// them that the import did not write are kept at the end.
pub(super) fn without(text: &str, kind: &str, names: &[String]) -> Result<String, CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::Usage(error.to_string());
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| failed(&error))?;
    let Some(tables) = document.get_mut(kind).and_then(Item::as_table_like_mut) else {
        return Ok(text.to_owned());
    };
    let removed: Vec<_> = names.iter().filter_map(|name| tables.remove(name)).collect();
    if tables.is_empty() && document[kind].as_table().is_some_and(Table::is_implicit) {
        document.remove(kind);
    }
    for item in removed {
        let prefix = item.as_table().and_then(|table| table.decor().prefix()?.as_str());
        let lines = prefix.unwrap_or_default().lines();
        let kept: Vec<_> = lines.filter(|line| !line.trim_start().starts_with(MARK)).collect();
        if kept.iter().any(|line| line.trim_start().starts_with('#')) {
            let end = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(format!("{}\n{end}", kept.join("\n")));
        }
    }
    let left = document.to_string();
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
