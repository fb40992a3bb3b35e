//! The host's part of a built-in: grants that depend on the call, and arguments that only the host
//! sets.

use kitbag_config::ConfiguredTool;
use kitbag_contract::{ErrorInfo, Limits};
use kitbag_policy::DirectoryGrant;
use serde_json::{Map, Value};

use crate::registry::ToolboxState;

/// The host's part of an embedded component.
pub(crate) trait Adapter: Sync {
    /// Adds the parts of this configuration that a model needs to know to the component's
    /// description. A call does not use them.
    fn describe(&self, state: &ToolboxState, tool: &ConfiguredTool, description: &mut String);

    fn names_tools(&self) -> bool {
        false
    }

    /// The arguments that only the host sets. Those of a caller are dropped.
    fn own_arguments(&self) -> &'static [&'static str];

    /// Returns the additions that a call with these arguments receives in addition to its
    /// configuration.
    ///
    /// # Errors
    ///
    /// The answer that the tool gives instead of running.
    fn prepare(
        &self,
        state: &ToolboxState,
        arguments: &Map<String, Value>,
        limits: &Limits,
    ) -> Result<Additions, AdapterRefusal>;
}

pub(crate) struct AdapterRefusal {
    /// The reason in one word, for the audit log.
    pub(crate) reason: &'static str,
    pub(crate) answer: ErrorInfo,
}

#[derive(Default)]
pub(crate) struct Additions {
    pub(crate) directories: Vec<DirectoryGrant>,
    pub(crate) arguments: Map<String, Value>,
}
