//! The state of built-in tools: on or off.

use std::collections::BTreeMap;
use std::sync::Arc;

use kitbag_contract::ToolName;
use kitbag_policy::Access;

use crate::config::{ConfiguredTool, ToolSource};
use crate::format::GrantsConfig;
use crate::format::span::At;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;
use crate::read::sources::BuiltinTool;
use crate::resolve::context::Context;
use crate::resolve::grants::filesystem::{self, names_directories, writes};
use crate::resolve::tools::switches::Switches;

/// Turns off built-ins that have no grant of a required kind, unless a file turned them on or tried
/// to grant it.
pub(crate) fn without_required(
    context: &Context<'_>,
    tools: &mut BTreeMap<ToolName, ConfiguredTool>,
) {
    for (name, tool) in tools {
        let ToolSource::Builtin { name: own } = &tool.source.value else { continue };
        let Some(builtin) = context.named(&own.value) else { continue };
        let switches = &context.switches.toolsets.switches;
        let is_asked =
            tool.enable.origin != Origin::Default || switches.contains_key(builtin.toolset);
        if tool.disabled.is_some() || is_asked || !tool.grants.warnings.is_empty() {
            continue;
        }
        let grants = tool.grants.value.kinds();
        let is_granted = |key: &str| grants.iter().any(|it| it.key() == key && !it.is_empty());
        let missing = builtin.required.iter().find(|(key, _)| !is_granted(key));
        tool.disabled = missing.map(|(key, setting)| Disabled::NotGranted {
            tool: name.clone(),
            setting: (*setting).to_owned(),
            empty: match tool.grants.origin_of(key) {
                Origin::Default | Origin::Tool => None,
                origin => Some(origin.clone()),
            },
            file: context.own_file.map(Arc::from),
        });
    }
}

/// Returns the reason why a built-in is off. `enable` is the value in its own table, and `grants`
/// are its grants in all layers, the weakest first.
pub(crate) fn disabled(
    context: &Context<'_>,
    builtin: &BuiltinTool<'_>,
    enable: Option<&Sourced<bool>>,
    grants: &[At<'_, GrantsConfig>],
) -> Option<Disabled> {
    let Switches { toolsets, user_forbids_writing, own, place } = &context.switches;
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
            file: context.own_file.map(Arc::from),
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
        true => filesystem::workspace_never_writable(context)
            .map(|reason| Disabled::NeverWritable { reason }),
        false => None,
    }
}
