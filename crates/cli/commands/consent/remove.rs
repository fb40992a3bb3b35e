//! `kitbag remove`.
//!
//! Edits the files as text, so that it can also remove a tool whose entry is invalid, or from a
//! configuration with other mistakes.

use std::fs;
use std::io;
use std::path::PathBuf;

use kitbag::Config;
use kitbag::base::shell;
use kitbag::config::Layer;
use kitbag::contract::ToolName;
use serde_json::json;

use crate::commands::Global;
use crate::commands::consent::add::tool_files::{LockedToolFiles, ToolFiles};
use crate::commands::consent::add::workspace_trust::TrustBefore;
use crate::commands::consent::add::{is_in, table};
use crate::commands::consent::servers::{self, added_name};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag remove weather")]
pub(crate) struct Args {
    /// The name of the tool or the MCP server, as `kitbag list` shows it
    #[arg(value_parser = added_name)]
    name: String,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        if let Some(exit) = servers::remove::remove(&global, &self.name)? {
            return Ok(exit);
        }
        let name =
            &ToolName::new(&*self.name).map_err(|error| CliError::Usage(error.to_string()))?;
        let place = self.place(name, &global)?;
        let mut locked = place.lock_leniently()?;
        let path = component(&place, &locked, name);
        // Removes all of the tool or nothing: the table must be found first.
        let left = locked.config_text().and_then(|text| {
            table::without(text, name.as_str()).map_err(|error| {
                CliError::Usage(format!(
                    "`{}` cannot be changed: {error}",
                    place.shown(&place.config)
                ))
            })
        });
        let left = left.map_err(|error| {
            let command = shell::command(["kitbag", "remove", name.as_str()]);
            let config = place.shown(&place.config);
            let hint = format!("nothing was removed; repair `{config}`, then run `{command}`");
            CliError::Hinted { error: Box::new(error), hint }
        })?;
        // The component first: the tool cannot run without it.
        let trusted = TrustBefore::now_leniently(&global);
        let is_own = is_in(&place.tools, &path);
        if is_own {
            let failed = |source| CliError::Save { path: path.display().to_string(), source };
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        if let Some(text) = &left {
            locked.write_config(text)?;
        }
        let is_recorded_still = locked.forget(name)?;
        if is_recorded_still {
            output::note(&format!(
                "`{}` cannot be read and is unchanged; remove its `[tools.{name}]` yourself",
                place.shown(&place.lock)
            ));
        }
        // Only an existing trust can be extended.
        if place.layer == Layer::Workspace
            && let Some(trusted) = trusted.filter(|trusted| !matches!(trusted, TrustBefore::None))
        {
            let component = is_own.then_some((&*path, None));
            trusted.extend(&global, &format!("tool `{name}`"), &locked.changed(component))?;
        }
        if global.json {
            output::json(&json!({ "name": name, "wasm": path, "config": place.config }))?;
            return Ok(Exit::Done);
        }
        let component = match is_own {
            true => format!("its component {}", place.shown(&path)),
            false => format!("its record; its component {} stays", place.shown(&path)),
        };
        output::data(&format!(
            "Removed {name}: its table in {}, and {component}.",
            place.shown(&place.config)
        ))?;
        Ok(Exit::Done)
    }

    /// Returns the files that hold the tool: those of the workspace, or of the user.
    fn place(&self, name: &ToolName, global: &Global) -> Result<ToolFiles, CliError> {
        // Also reads an untrusted configuration, because no tool is called.
        let (kitbag, _) = global.builder().ask_trust().single_call().build_faulty();
        let config = kitbag.as_ref().map(|kitbag| kitbag.toolbox().config());
        let place = ToolFiles::find(global, config, |place| place.has_added(name))?;
        place.ok_or_else(|| CliError::Usage(not_added(name, config)))
    }
}

/// Returns the error for a name that is not in any lock file.
fn not_added(name: &ToolName, config: Option<&Config>) -> String {
    let tools = config.map(|config| &config.tools);
    match tools.and_then(|tools| tools.get(name)) {
        Some(_) => {
            format!("`{name}` was not added with `kitbag add`; `kitbag list` shows its source")
        }
        None => {
            let known = tools.into_iter().flatten().map(|(known, _)| known.as_str());
            let near = kitbag::base::text::nearest(name.as_str(), known);
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("no tool is named `{name}`{near}")
        }
    }
}

/// Returns the component of a tool: the path in its table, or the default path of `kitbag add`.
fn component(place: &ToolFiles, locked: &LockedToolFiles<'_>, name: &ToolName) -> PathBuf {
    let text = locked.config_text().unwrap_or_default();
    let written = table::wasm(text, name.as_str());
    written
        .and_then(|written| place.absolute(&written))
        .unwrap_or_else(|| place.component(name.as_str()))
}
