//! Checking a configuration and a component before they are written.

use std::sync::Arc;

use kitbag_config::{BytesTool, Config, Proposal, ToolSource};
use kitbag_contract::ToolName;

use crate::Builder;

impl Builder {
    /// Reads this text instead of the file of its layer, to check it before it is written.
    #[must_use]
    pub fn proposal(mut self, proposal: Proposal) -> Self {
        self.proposal = Some(proposal);
        self
    }

    /// Replaces the component of a tool that has its component in a file, to check the new
    /// component before it is written. Has no effect without such a tool.
    #[must_use]
    pub fn component_instead(mut self, tool: ToolName, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.instead = Some((tool, bytes.into()));
        self
    }
}

/// Replaces a tool's component file with bytes of the program. Returns false if no such tool is
/// enabled.
pub(crate) fn replace_component(config: &mut Config, name: &ToolName) -> bool {
    let Some(tool) = config.tools.get_mut(name).filter(|tool| tool.is_enabled()) else {
        return false;
    };
    let ToolSource::Local(local) = &mut tool.source.value else { return false };
    // A tool of the program never has the name of a built-in.
    if local.replaces.is_some() {
        return false;
    }
    let (call, parameters) = (std::mem::take(&mut local.call), local.parameters.take());
    tool.source.value = ToolSource::Bytes(BytesTool { component: name.clone(), call, parameters });
    true
}
