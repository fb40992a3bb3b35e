//! `[toolsets]`: which built-in tools are on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::ToolName;
use kitbag_policy::Access;

use super::grants::{names_directories, writes};
use super::resolver::Resolver;
use crate::config::{DIRECTORY, FILE, Tool, ToolSource};
use crate::discover::Workspace;
use crate::error::Diagnostic;
use crate::file::{Layer, SourceFile};
use crate::format::{ConfigFile, GrantsConfig};
use crate::origin::{Origin, Sourced};
use crate::path::holds;
use crate::problem::Problem;
use crate::sources::BuiltinTool;
use crate::toolsets::{Disabled, OFF_BY_DEFAULT, Toolsets};
use crate::written::At;

/// What decides whether a built-in tool is on.
#[derive(Default)]
pub(super) struct Switches {
    /// What `[toolsets]` says.
    pub(super) toolsets: Toolsets,
    /// Whether the user's own file has `write = false`: a workspace's grants do not count
    /// then.
    user_forbids_writing: bool,
    /// What the user's own file says of toolsets that are off by default.
    own: BTreeMap<&'static str, bool>,
    place: WorkspacePlace,
}

/// What is known of the directory that tools read where configuration says nothing.
#[derive(Default)]
pub(super) struct WorkspacePlace {
    /// Absolute.
    root: PathBuf,
    /// Whether it was named, or found by `.kitbag` or `.git`.
    is_chosen: bool,
    /// Whether it is `/`, or holds the home directory.
    is_home: bool,
}

impl WorkspacePlace {
    pub(super) fn new(workspace: &Workspace, home: Option<&Path>) -> Self {
        Self {
            root: workspace.root.value.clone(),
            is_chosen: workspace.root.origin != Origin::Default,
            is_home: holds(&workspace.canonical, home),
        }
    }
}

impl Switches {
    /// Merges what the layers say, the weakest first. What the user's own file switches off
    /// of what is off by default stays off: the files of a workspace count without
    /// confirmation. `own_file` is that file, unless the workspace has one that counts.
    pub(super) fn new(
        layers: &[(&SourceFile, &ConfigFile)],
        place: WorkspacePlace,
        own_file: Option<&Path>,
        is_ignored: bool,
    ) -> Self {
        let file = match (place.is_chosen && !is_ignored, own_file) {
            (false, Some(file)) => file.to_owned(),
            _ => place.root.join(DIRECTORY).join(FILE),
        };
        let mut switches = Self { place, ..Self::default() };
        let Toolsets { write, switches: by_name, file: names } = &mut switches.toolsets;
        *names = file.into();
        for (file, config) in layers {
            let Some(table) = &config.toolsets else { continue };
            let named = table.switches().into_iter();
            let named = named.filter_map(|(name, switch)| Some((name, switch.as_ref()?.at(file))));
            for (name, at) in named {
                if switches.own.get(name) != Some(&false) {
                    by_name.insert(name, at.sourced(*at.value));
                }
                if OFF_BY_DEFAULT.contains(&name) && file.layer() == Layer::User {
                    switches.own.insert(name, *at.value);
                }
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

    /// The toolsets that are switched on and that this binary was built without.
    pub(super) fn unmatched(&self, builtins: &[BuiltinTool<'_>]) -> Vec<Diagnostic> {
        let is_absent = |name: &str| builtins.iter().all(|builtin| builtin.toolset != name);
        let on = self.toolsets.switches.iter().filter(|(_, switch)| switch.value);
        let absent = on.filter(|(name, _)| is_absent(name)).map(|(toolset, switch)| Diagnostic {
            origin: switch.origin.clone(),
            problem: Problem::AbsentToolset { toolset },
            excerpt: None,
            hint: None,
        });
        absent.collect()
    }
}

impl Resolver<'_> {
    /// Turns built-ins off that cannot do without a grant, where they have none of its kind
    /// and no file has turned them on or tried to grant it.
    pub(super) fn without_required(&self, tools: &mut BTreeMap<ToolName, Tool>) {
        for (name, tool) in tools {
            let ToolSource::Builtin { name: own } = &tool.source.value else { continue };
            let Some(builtin) = self.named(&own.value) else { continue };
            let switches = &self.switches.toolsets.switches;
            let is_asked =
                tool.enable.origin != Origin::Default || switches.contains_key(builtin.toolset);
            if tool.disabled.is_some() || is_asked || !tool.grants.warnings.is_empty() {
                continue;
            }
            let grants = tool.grants.value.kinds();
            let is_granted = |setting: &&&str| {
                let kind = setting.split(' ').next().unwrap_or_default();
                grants.iter().any(|grants| grants.key() == kind && !grants.is_empty())
            };
            let missing = builtin.required.iter().find(|setting| !is_granted(setting));
            tool.disabled = missing.map(|setting| Disabled::NotGranted {
                tool: name.clone(),
                setting: (*setting).to_owned(),
                file: self.own_file.map(Arc::from),
            });
        }
    }

    /// Whether the user's own file turned a toolset on that is off by default.
    pub(super) fn is_own_choice(&self, builtin: &BuiltinTool<'_>) -> bool {
        self.switches.own.get(builtin.toolset) == Some(&true)
    }

    /// Why a built-in is off. `enable` is what its own table says, and `grants` what the
    /// layers grant it, the weakest first.
    pub(super) fn disabled(
        &self,
        builtin: &BuiltinTool<'_>,
        enable: Option<&Sourced<bool>>,
        grants: &[At<'_, GrantsConfig>],
    ) -> Option<Disabled> {
        let Switches { toolsets, user_forbids_writing, own, place } = &self.switches;
        if let Some(Sourced { value: false, origin }) = enable {
            return Some(Disabled::Tool { origin: origin.clone() });
        }
        let is_final = own.get(builtin.toolset) == Some(&false);
        if let Some(disabled) = toolsets.disabled(builtin.toolset)
            && (enable.is_none() || is_final)
        {
            return Some(disabled);
        }
        let access = builtin.workspace;
        let has_default = access.is_some() && !names_directories(grants);
        let is_asked = enable.is_some() || toolsets.switches.contains_key(builtin.toolset);
        if has_default && !is_asked && (!place.is_chosen || place.is_home) {
            return Some(Disabled::NoWorkspace {
                toolset: builtin.toolset.to_owned(),
                root: place.root.clone(),
                is_home: place.is_home,
                file: self.own_file.map(Arc::from),
            });
        }
        let asks_to_write = access == Some(Access::ReadWrite);
        let may_write = match writes(grants) {
            Some(Layer::User) => true,
            Some(_) => !user_forbids_writing,
            None => !asks_to_write || toolsets.write.value,
        };
        if !may_write {
            let (origin, file) = (toolsets.write.origin.clone(), Arc::clone(&toolsets.file));
            return Some(Disabled::Write { origin, file });
        }
        match asks_to_write && has_default {
            true => {
                self.workspace_never_writable().map(|reason| Disabled::NeverWritable { reason })
            }
            false => None,
        }
    }
}
