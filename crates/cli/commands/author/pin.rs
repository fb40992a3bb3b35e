//! Records the build of a tool that `kitbag.lock` already has.

use std::path::{Path, PathBuf};

use kitbag::Kitbag;
use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::{Layer, LockedTool, ToolSource};
use kitbag::contract::ToolName;

use crate::commands::author::Project;
use crate::commands::consent::add::recorded;
use crate::commands::consent::add::source::Source;
use crate::commands::consent::add::tool_files::ToolFiles;
use crate::commands::consent::add::workspace_trust::Changed;
use crate::commands::consent::update::{changed_keys, keep_source};
use crate::commands::{Global, limits_now};
use crate::error::CliError;

/// A tool of the workspace whose record has the component that a build replaces.
pub(crate) struct Pin {
    pub(crate) tool: ToolName,
    old: LockedTool,
    /// The installed component.
    path: PathBuf,
    /// True if the recorded component was built by this project.
    pub(crate) is_own: bool,
}

/// A record that was replaced.
pub(crate) struct Renewed {
    pub(crate) tool: ToolName,
    /// The keys of the record that changed.
    pub(crate) changed: Vec<&'static str>,
}

impl Pin {
    /// Returns the tools in the lock file of the workspace whose component is at `path`. `built` is
    /// the file that the toolchain made.
    ///
    /// # Errors
    ///
    /// A recorded component was downloaded: the build would replace the tool of another author.
    pub(crate) fn of(
        path: &Path,
        built: &Path,
        project: &Project,
        global: &Global,
    ) -> Result<Vec<Self>, CliError> {
        let Some(kitbag) = all_tools(global) else { return Ok(Vec::new()) };
        let mut pins = Vec::new();
        for (tool, settings) in &kitbag.toolbox().config().tools {
            let ToolSource::Local(local) = &settings.source.value else { continue };
            let Some(record) = local.recorded.as_ref().filter(|_| local.wasm.value == path) else {
                continue;
            };
            // With `dev` a person accepts each build that requests no more than the record.
            if local.layer == Layer::User || local.dev.value {
                continue;
            }
            let old = record.tool.clone();
            let origin = old.origin.as_deref().unwrap_or_default();
            if old.download.is_some() {
                let error = CliError::Usage(format!(
                    "the build would replace the tool `{tool}`, which was downloaded from `{}`",
                    shown(origin)
                ));
                let remove = shell::command(["kitbag", "remove", tool.as_str()]);
                let hint = format!("rename your tool, or run `{remove}` first");
                return Err(CliError::Hinted { error: Box::new(error), hint });
            }
            // Other origins are paths elsewhere, or only the name of a file.
            let own = [path, built].map(|file| file.strip_prefix(&project.workspace).ok());
            let is_own = own.contains(&Some(Path::new(origin))) && old.manifest.is_none();
            pins.push(Self { tool: tool.clone(), old, path: path.to_owned(), is_own });
        }
        Ok(pins)
    }

    /// Replaces the records of tools that this project built before. A person who builds their own
    /// tool need not review it. Adds the lock file to the changed files.
    pub(crate) fn renew(
        pins: &[Self],
        project: &Project,
        global: &Global,
        changed: &mut Changed,
    ) -> Result<Vec<Renewed>, CliError> {
        let mut renewed = Vec::new();
        if pins.is_empty() {
            return Ok(renewed);
        }
        let place = ToolFiles::at(Layer::Workspace, project.workspace.clone(), None)?;
        let mut locked = place.lock()?;
        let Some(kitbag) = all_tools(global) else { return Ok(renewed) };
        for pin in pins {
            let Some(settings) = kitbag.toolbox().config().tools.get(pin.tool.as_str()) else {
                continue;
            };
            if locked.recorded.tools.get(&pin.tool) != Some(&pin.old) {
                continue;
            }
            let source = Source::in_place(&pin.path, Global::home().as_deref())?;
            let host = kitbag.toolbox().host();
            let described = source.described(host, &limits_now(global)?, global.json)?;
            let parts = source.parts(&described, settings.own_name());
            let mut new = recorded(&source, parts, &place);
            keep_source(&mut new, &pin.old, &place);
            let keys = changed_keys(Some(&pin.old), &new);
            if !keys.is_empty() {
                locked.recorded.tools.insert(pin.tool.clone(), new);
                renewed.push(Renewed { tool: pin.tool.clone(), changed: keys });
            }
        }
        locked.write_lock()?;
        changed.extend(locked.changed(None));
        Ok(renewed)
    }
}

/// Returns a toolbox with all recorded tools, including those not in effect. `None` if the
/// configuration cannot be read.
fn all_tools(global: &Global) -> Option<Kitbag> {
    global.builder().ask_trust().single_call().build_faulty().0
}
