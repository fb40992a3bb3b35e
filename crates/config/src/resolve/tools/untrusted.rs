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
use crate::trust::untrusted::{NamedSource, NamedTool};
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
