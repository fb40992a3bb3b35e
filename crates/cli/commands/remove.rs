//! `kitbag remove`.

use std::fs;
use std::io;

use kitbag::config::{Layer, ToolSource};
use kitbag::contract::ToolName;
use serde_json::json;

use crate::commands::add::place::Place;
use crate::commands::add::trusted::TrustBefore;
use crate::commands::add::{is_in, table};
use crate::commands::{Global, built};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag remove weather")]
pub(crate) struct Args {
    /// The tool's name, which `kitbag list` shows
    tool: ToolName,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        // What was recorded, also where it does not count: nothing is called.
        let kitbag = built(global.builder().ask_trust())?;
        let config = kitbag.toolbox().config();
        let name = &self.tool;
        let not_added = || {
            CliError::Usage(format!(
                "`{name}` was not added with `kitbag add`; `kitbag list` shows where it comes from"
            ))
        };
        let Some(tool) = config.tools.get(name.as_str()) else {
            let known = config.tools.keys().map(ToolName::as_str);
            let near = kitbag::contract::text::nearest(name.as_str(), known);
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(CliError::Usage(format!("there is no tool `{name}`{near}")));
        };
        let ToolSource::Local(local) = &tool.source.value else { return Err(not_added()) };
        if local.recorded.is_none() {
            return Err(not_added());
        }
        let place = Place::new(local.layer, config)?;
        let path = local.wasm.value.clone();
        // The component first: without it nothing of the name runs.
        let mut locked = place.lock()?;
        let trusted = TrustBefore::now(&global)?;
        let is_own = is_in(&place.tools, &path);
        if is_own {
            let failed = |source| CliError::Save { path: path.display().to_string(), source };
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        let left = table::without(locked.config_text()?, name.as_str());
        let left = left.map_err(|error| {
            CliError::Usage(format!("`{}` is left as it is: {error}", place.config.display()))
        })?;
        if let Some(text) = &left {
            locked.write_config(text)?;
        }
        locked.recorded.tools.remove(name);
        locked.write_lock()?;
        // Without trust in the workspace there is none that could go on.
        if place.layer == Layer::Workspace && !matches!(trusted, TrustBefore::None) {
            let component = is_own.then_some((&*path, None));
            trusted.extend(&global, name, &locked.changed(component))?;
        }
        if global.json {
            output::json(&json!({ "name": name, "wasm": path, "config": place.config }))?;
            return Ok(Exit::Done);
        }
        let component = match is_own {
            true => format!("its component {}", place.shown(&path)),
            false => format!("what was recorded of it; its component {} stays", place.shown(&path)),
        };
        output::data(&format!(
            "Removed {name}: its table in {}, and {component}.",
            place.shown(&place.config)
        ))?;
        Ok(Exit::Done)
    }
}
