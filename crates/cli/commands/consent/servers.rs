//! The parts of `kitbag add`, `kitbag update` and `kitbag remove` for MCP servers.

pub(crate) mod add;
mod difference;
mod listing;
pub(crate) mod remove;
mod start;
pub(crate) mod update;

use kitbag::Config;
use kitbag::config::{Layer, LockedServer};
use kitbag::contract::ToolName;
use kitbag::policy::server::ServerName;

use crate::commands::Global;
use crate::commands::consent::add::tool_files::LockedToolFiles;
use crate::commands::consent::add::trial;
use crate::commands::consent::add::workspace_trust::TrustBefore;
use crate::error::CliError;

/// Parses the name of a tool or of a server.
pub(crate) fn added_name(text: &str) -> Result<String, String> {
    match (ToolName::new(text), ServerName::new(text)) {
        (Err(error), Err(_)) => Err(error.to_string()),
        _ => Ok(text.to_owned()),
    }
}

/// Writes the record of a server, and the configuration with its table if it is new.
fn write(
    global: &Global,
    mut locked: LockedToolFiles<'_>,
    (name, record): (&ServerName, LockedServer),
    config: Option<&str>,
) -> Result<(), CliError> {
    let trusted = TrustBefore::now(global)?;
    let layer = locked.layer();
    let before = (locked.recorded.clone(), locked.config_text()?.to_owned());
    locked.recorded.servers.insert(name.clone(), record);
    trial::check_size("kitbag.lock", &locked.recorded.to_string()).map_err(|error| {
        let hint = "nothing was recorded; choose fewer tools".to_owned();
        CliError::Hinted { error: Box::new(error), hint }
    })?;
    let written = locked.write_lock().and_then(|()| match config {
        Some(text) => locked.write_config(text),
        None => Ok(()),
    });
    if let Err(error) = written {
        locked.recorded = before.0;
        locked.write_config(&before.1)?;
        locked.write_lock()?;
        return Err(error);
    }
    if layer == Layer::User {
        return Ok(());
    }
    trusted.extend(global, &format!("server `{name}`"), &locked.changed(None))
}

/// Returns the names of all tools except those of a server.
fn other_tools<'a>(config: &'a Config, server: &ServerName) -> Vec<&'a str> {
    use kitbag::config::ToolSource;
    let is_own =
        |source: &ToolSource| matches!(source, ToolSource::Server(tool) if tool.server == *server);
    let tools = config.tools.values().filter(|tool| !is_own(&tool.source.value));
    tools.map(|tool| tool.name.as_str()).collect()
}
