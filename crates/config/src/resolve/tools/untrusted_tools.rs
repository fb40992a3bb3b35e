//! Tools of an untrusted workspace: they are listed, but do not run.

use std::collections::BTreeMap;

use kitbag_contract::ToolName;
use kitbag_state::trust::WorkspaceEdit;

use crate::config::{ConfiguredTool, LocalTool, ToolSource};
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::Sourced;
use crate::layers::toolsets::Disabled;
use crate::read::{FoundScript, FoundTool};
use crate::resolve::context::Context;
use crate::resolve::tools::switches::Switches;
use crate::trust::restrictions::{NamedSource, NamedTool, SwitchTarget, WithheldSwitch};
use crate::trust::workspace::UntrustedReason;

/// Returns the components of the workspace. In an untrusted workspace a component does not take the
/// name of another tool.
pub(super) fn listed_components<'b>(
    context: &Context<'_>,
    found: &'b BTreeMap<ToolName, FoundTool>,
) -> impl Iterator<Item = (&'b ToolName, &'b FoundTool)> {
    found.iter().filter(|(name, _)| !is_taken(context, name))
}

pub(super) fn listed_scripts<'a>(
    context: &Context<'a>,
    found: &BTreeMap<ToolName, FoundTool>,
) -> impl Iterator<Item = (&'a ToolName, &'a FoundScript)> {
    let is_twice = |name: &ToolName| context.is_untrusted() && found.contains_key(name);
    context.scripts.iter().filter(move |(name, _)| !is_taken(context, name) && !is_twice(name))
}

fn is_taken(context: &Context<'_>, name: &ToolName) -> bool {
    let is_other = context.named(name.as_str()).is_some() || context.bytes_tools.contains(name);
    context.is_untrusted() && is_other
}

/// Turns off a tool whose code belongs to an untrusted workspace, and keeps only its name.
pub(crate) fn turned_off(context: &Context<'_>, mut tool: ConfiguredTool) -> ConfiguredTool {
    tool.turn_off(match context.trust.untrusted().map(|untrusted| &untrusted.reason) {
        Some(UntrustedReason::Changed(edits)) => {
            let cause = edits.first().unwrap_or(&WorkspaceEdit::Places).to_string();
            Disabled::Edited { cause }
        }
        _ => Disabled::Untrusted,
    });
    tool
}

/// Names the switch of an untrusted file as the reason why a built-in tool is off, if trust in the
/// workspace turns the tool on.
pub(crate) fn name_switches(
    context: &Context<'_>,
    withheld: &[(usize, WithheldSwitch)],
    tools: &mut BTreeMap<ToolName, ConfiguredTool>,
) {
    let Switches { user_forbids_writing, own, .. } = &context.switches;
    for tool in tools.values_mut() {
        let is_meant = |target: &SwitchTarget| match (&tool.disabled, target) {
            (Some(Disabled::Write { .. }), SwitchTarget::Write) => !user_forbids_writing,
            (Some(Disabled::Write { .. }), SwitchTarget::Grant(name)) => {
                !user_forbids_writing && *name == tool.name.as_str()
            }
            (
                Some(Disabled::Toolset { toolset, .. } | Disabled::OffByDefault { toolset, .. }),
                SwitchTarget::Toolset(name),
            ) => toolset == name && own.get(name) != Some(&false),
            _ => false,
        };
        let Some((file, switch)) = withheld.iter().find(|(_, it)| is_meant(&it.target)) else {
            continue;
        };
        let setting = match &switch.target {
            SwitchTarget::Write => "[toolsets] write = true".to_owned(),
            SwitchTarget::Toolset(name) => format!("[toolsets] {name} = true"),
            SwitchTarget::Grant(name) => format!("[tools.{name}.grants] filesystem"),
        };
        let origin = context.files[*file].origin(switch.span.start);
        tool.disabled = Some(Disabled::UntrustedSwitch { setting, origin });
    }
}

/// Lists the tools that the file of an untrusted workspace names.
pub(crate) fn list(
    context: &Context<'_>,
    named: &[(usize, NamedTool)],
    tools: &mut BTreeMap<ToolName, ConfiguredTool>,
    limits: &EffectiveLimits,
) {
    for (file, NamedTool { name, span, source }) in named {
        if tools.contains_key(name) {
            continue;
        }
        let origin = context.files[*file].origin(span.start);
        let value = match source {
            NamedSource::Builtin(own) => {
                let name = Sourced { value: own.clone(), origin: origin.clone() };
                if context.named(own).is_none() {
                    continue;
                }
                ToolSource::Builtin { name }
            }
            NamedSource::Component(wasm) => {
                let Ok(path) = context.bases.absolute(wasm) else { continue };
                let wasm = Sourced { value: path, origin: origin.clone() };
                ToolSource::Local(LocalTool::new(wasm, None, None))
            }
        };
        let source = Sourced { value, origin };
        let tool = ConfiguredTool::of_caller(name.clone(), source, limits.clone());
        tools.insert(name.clone(), turned_off(context, tool));
    }
}
