//! Tools of a workspace that is not trusted: they are listed, and do not run.

use std::collections::BTreeMap;

use kitbag_contract::ToolName;
use kitbag_state::trust::WorkspaceEdit;

use crate::config::{ConfiguredTool, LocalTool, ToolSource};
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::Sourced;
use crate::layers::toolsets::Disabled;
use crate::read::{FoundScript, FoundTool};
use crate::resolve::resolver::Resolver;
use crate::trust::untrusted::{NamedSource, NamedTool};
use crate::trust::workspace::UntrustedReason;

impl Resolver<'_> {
    /// The components of the workspace, without those whose names are those of other tools,
    /// where it is not trusted: it takes no tool away.
    pub(in crate::resolve) fn listed_components<'b>(
        &self,
        found: &'b BTreeMap<ToolName, FoundTool>,
    ) -> impl Iterator<Item = (&'b ToolName, &'b FoundTool)> {
        found.iter().filter(|(name, _)| !self.is_taken(name))
    }

    /// The same, of the scripts.
    pub(in crate::resolve) fn listed_scripts<'b>(
        &self,
        scripts: &'b BTreeMap<ToolName, FoundScript>,
        found: &BTreeMap<ToolName, FoundTool>,
    ) -> impl Iterator<Item = (&'b ToolName, &'b FoundScript)> {
        let is_twice = |name: &ToolName| self.is_untrusted() && found.contains_key(name);
        scripts.iter().filter(move |(name, _)| !self.is_taken(name) && !is_twice(name))
    }

    fn is_taken(&self, name: &ToolName) -> bool {
        let is_other = self.named(name.as_str()).is_some() || self.bytes_tools.contains(name);
        self.is_untrusted() && is_other
    }

    /// A tool whose code is that of a workspace which is not trusted, of which nothing counts
    /// but its name.
    pub(in crate::resolve) fn untrusted(&self, mut tool: ConfiguredTool) -> ConfiguredTool {
        tool.turn_off(match self.trust.untrusted().map(|untrusted| &untrusted.reason) {
            Some(UntrustedReason::Changed(edits)) => {
                let cause = edits.first().unwrap_or(&WorkspaceEdit::Places).to_string();
                Disabled::Edited { cause }
            }
            _ => Disabled::Untrusted,
        });
        tool
    }

    /// Lists the tools that the file of a workspace names which is not trusted.
    pub(in crate::resolve) fn list_untrusted(
        &self,
        named: &[(usize, NamedTool)],
        tools: &mut BTreeMap<ToolName, ConfiguredTool>,
        limits: &EffectiveLimits,
    ) {
        for (file, NamedTool { name, span, source }) in named {
            if tools.contains_key(name) {
                continue;
            }
            let origin = self.files[*file].origin(span.start);
            let value = match source {
                NamedSource::Builtin(own) => {
                    let name = Sourced { value: own.clone(), origin: origin.clone() };
                    if self.named(own).is_none() {
                        continue;
                    }
                    ToolSource::Builtin { name }
                }
                NamedSource::Component(wasm) => {
                    let Ok(path) = self.bases.absolute(wasm) else { continue };
                    let wasm = Sourced { value: path, origin: origin.clone() };
                    ToolSource::Local(LocalTool::new(wasm, None, None))
                }
            };
            let source = Sourced { value, origin };
            let tool = ConfiguredTool::of_caller(name.clone(), source, limits.clone());
            tools.insert(name.clone(), self.untrusted(tool));
        }
    }
}
