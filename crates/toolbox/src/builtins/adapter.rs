//! What the host does for a built-in of its own: grants that depend on the call, and
//! arguments that no caller gives.

use kitbag_config::{Config, ConfiguredTool};
use kitbag_contract::{ErrorInfo, Limits};
use kitbag_policy::DirectoryGrant;
use serde_json::{Map, Value};

use crate::registry::ToolboxState;

/// The host's half of an embedded component.
pub(crate) trait Adapter: Sync {
    /// Adds to the component's description what a model has to know of this
    /// configuration. A call does without it.
    fn describe(&self, config: &Config, tool: &ConfiguredTool, description: &mut String);

    fn names_tools(&self) -> bool {
        false
    }

    /// The arguments that the host alone gives: a caller's are dropped.
    fn own_arguments(&self) -> &'static [&'static str];

    /// What a call with these arguments gets besides what is configured.
    ///
    /// # Errors
    ///
    /// What the tool answers instead of running.
    fn prepare(
        &self,
        inner: &ToolboxState,
        arguments: &Map<String, Value>,
        limits: &Limits,
    ) -> Result<Additions, AdapterRefusal>;
}

pub(crate) struct AdapterRefusal {
    /// For the audit log, in a word.
    pub(crate) reason: &'static str,
    pub(crate) answer: ErrorInfo,
}

#[derive(Default)]
pub(crate) struct Additions {
    pub(crate) directories: Vec<DirectoryGrant>,
    pub(crate) arguments: Map<String, Value>,
}
