//! `kitbag remove` of an MCP server: its table, and the record of its tools.

use kitbag::base::shell;
use kitbag::config::Layer;
use kitbag::policy::server::ServerName;
use serde_json::json;

use crate::commands::Global;
use crate::commands::consent::add::table;
use crate::commands::consent::add::tool_files::ToolFiles;
use crate::commands::consent::add::workspace_trust::TrustBefore;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// Removes a server. `None`: no configuration has one of this name.
pub(crate) fn remove(global: &Global, name: &str) -> Result<Option<Exit>, CliError> {
    let Ok(name) = ServerName::new(name) else { return Ok(None) };
    // Also reads an untrusted configuration, because no server starts.
    let (kitbag, _) = global.builder().ask_trust().single_call().build_faulty();
    let config = kitbag.as_ref().map(|kitbag| kitbag.toolbox().config());
    let place = ToolFiles::find(global, config, |place| {
        let text = place.config_text().unwrap_or_default();
        Ok(table::has_server(&text, name.as_str()) == Some(true))
    })?;
    place.map(|place| of(global, &name, &place)).transpose()
}

fn of(global: &Global, name: &ServerName, place: &ToolFiles) -> Result<Exit, CliError> {
    let mut locked = place.lock_leniently()?;
    let trusted = TrustBefore::now_leniently(global);
    let left = table::without_server(locked.config_text()?, name.as_str()).map_err(|error| {
        let config = place.shown(&place.config);
        let hint = format!(
            "nothing was removed; repair `{config}`, then run `{}`",
            shell::command(["kitbag", "remove", name.as_str()])
        );
        let error = CliError::Usage(format!("`{config}` cannot be changed: {error}"));
        CliError::Hinted { error: Box::new(error), hint }
    })?;
    // The table first: without it the server cannot start.
    if let Some(text) = &left {
        locked.write_config(text)?;
    }
    if locked.forget_server(name)? {
        output::note(&format!(
            "`{}` cannot be read and is unchanged; remove its `[servers.{name}]` yourself",
            place.shown(&place.lock)
        ));
    }
    // Only an existing trust can be extended.
    if place.layer == Layer::Workspace
        && let Some(trusted) = trusted.filter(|trusted| !matches!(trusted, TrustBefore::None))
    {
        trusted.extend(global, &format!("server `{name}`"), &locked.changed(None))?;
    }
    match global.json {
        true => output::json(&json!({ "server": name, "config": place.config }))?,
        false => output::data(&format!(
            "Removed the server {name}: its table in {}, and its record. Its secrets stay.",
            place.shown(&place.config)
        ))?,
    }
    Ok(Exit::Done)
}
