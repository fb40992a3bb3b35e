//! `[toolsets]`: the switches of all layers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::{DIRECTORY, FILE};
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::holds;
use crate::layers::toolsets::{OFF_BY_DEFAULT, Toolsets};
use crate::read::Workspace;
use crate::read::file::Layer;
use crate::read::sources::BuiltinTool;
use crate::report::{Diagnostic, Problem};
use crate::resolve::config_files::{ConfigFiles, tables};

#[derive(Default)]
pub(crate) struct Switches {
    pub(crate) toolsets: Toolsets,
    /// `true` if the user config has `write = false`: a workspace's grants then do not allow
    /// writing.
    pub(crate) user_forbids_writing: bool,
    /// The switches of the user config for toolsets that are off by default.
    pub(crate) own: BTreeMap<&'static str, bool>,
    pub(crate) place: WorkspacePlace,
}

/// The directory that tools read by default.
#[derive(Default)]
pub(crate) struct WorkspacePlace {
    /// The absolute path.
    pub(crate) root: PathBuf,
    /// `true` if the directory was named, or found by `.kitbag` or `.git`.
    pub(crate) is_chosen: bool,
    /// `true` if the directory is `/`, or contains the home directory.
    pub(crate) is_home: bool,
}

impl WorkspacePlace {
    pub(crate) fn new(workspace: &Workspace, home: Option<&Path>) -> Self {
        Self {
            root: workspace.root.value.clone(),
            is_chosen: workspace.root.origin != Origin::Default,
            is_home: holds(&workspace.canonical, home),
        }
    }
}

impl Switches {
    /// Merges the layers, the weakest first. A toolset that is off by default and that the user
    /// config switches off stays off: the files of a workspace take effect without confirmation.
    /// `own_file` is the user config, unless the workspace has a file that takes effect.
    /// `local_zone` is the time zone of the user, if no layer sets a time zone.
    pub(crate) fn new(
        configs: &ConfigFiles<'_>,
        place: WorkspacePlace,
        own_file: Option<&Path>,
        is_ignored: bool,
        local_zone: Option<Sourced<String>>,
    ) -> Self {
        let file = match (place.is_chosen && !is_ignored, own_file) {
            (false, Some(file)) => file.to_owned(),
            _ => place.root.join(DIRECTORY).join(FILE),
        };
        let mut switches = Self { place, ..Self::default() };
        let Toolsets { write, switches: by_name, zone, file: names } = &mut switches.toolsets;
        *zone = local_zone;
        *names = file.into();
        for (file, table) in tables(configs, |config| config.toolsets.as_ref()) {
            for (name, switch) in &table.switches() {
                let (name, Some(at)) = (*name, switch.as_ref().map(|it| it.at(file))) else {
                    continue;
                };
                if switches.own.get(name) != Some(&false) {
                    by_name.insert(name, at.sourced(*at.value));
                }
                if OFF_BY_DEFAULT.contains(&name) && file.layer() == Layer::User {
                    switches.own.insert(name, *at.value);
                }
            }
            if let Some(at) = table.zone().map(|zone| zone.at(file)) {
                *zone = Some(at.sourced(at.value.clone()));
            }
            if let Some(at) = table.write.as_ref().map(|write| write.at(file))
                && !switches.user_forbids_writing
            {
                switches.user_forbids_writing = file.layer() == Layer::User && !at.value;
                *write = at.sourced(*at.value);
            }
        }
        switches
    }

    /// Returns a warning for each toolset that is switched on but missing in this binary.
    pub(crate) fn unmatched(&self, builtins: &[BuiltinTool<'_>]) -> Vec<Diagnostic> {
        let is_absent = |name: &str| builtins.iter().all(|builtin| builtin.toolset != name);
        let on = self.toolsets.switches.iter().filter(|(_, switch)| switch.value);
        let absent = on.filter(|(name, _)| is_absent(name)).map(|(toolset, switch)| {
            let message = format!(
                "this kitbag was built without the toolset `{toolset}`, so this has no effect"
            );
            Problem::from(message).at(switch.origin.clone())
        });
        absent.collect()
    }

    pub(crate) fn is_own_choice(&self, builtin: &BuiltinTool<'_>) -> bool {
        self.own.get(builtin.toolset) == Some(&true)
    }
}
