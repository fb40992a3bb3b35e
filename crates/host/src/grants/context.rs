//! The context in which the grants of a call are opened.

use std::sync::Arc;

use kitbag_fs_guard::Guard;
use kitbag_http::{Account, Client};
use kitbag_policy::Grants;
use kitbag_secrets::Secrets;

use super::tools::ToolCalls;

/// Storage of the workspace's tools, and the namespace of one tool.
#[cfg(feature = "storage")]
#[derive(Clone, Debug)]
pub struct ToolStorage {
    /// Storage of the workspace.
    pub storage: kitbag_state::storage::Storage,
    /// Namespace of the tool.
    pub namespace: String,
}

/// Storage of a tool. It has no values, since this kitbag was built without storage.
#[cfg(not(feature = "storage"))]
#[derive(Clone, Debug)]
pub enum ToolStorage {}

/// The grants of one call, and the context in which they are opened.
#[derive(Clone, Copy)]
pub(crate) struct GrantContext<'a> {
    /// Name under which the tool was called.
    pub(crate) tool: &'a str,
    /// Account of the call's connections.
    pub(crate) account: &'a Account,
    pub(crate) grants: &'a Arc<Grants>,
    pub(crate) guard: &'a Arc<Guard>,
    pub(crate) client: &'a Client,
    pub(crate) secrets: &'a Arc<Secrets>,
    #[cfg_attr(not(feature = "storage"), expect(dead_code, reason = "nothing is kept"))]
    pub(crate) storage: Option<&'a ToolStorage>,
    pub(crate) tools: Option<&'a ToolCalls>,
}
