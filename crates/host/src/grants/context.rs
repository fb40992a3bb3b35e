//! What the grants of a call are opened with.

use std::sync::Arc;

use kitbag_fs_guard::Guard;
use kitbag_http::{Account, Client};
use kitbag_policy::Grants;
use kitbag_secrets::Secrets;

use super::tools::ToolCalls;

/// Where the tools of a workspace keep something, and which part of it is the tool's.
#[cfg(feature = "storage")]
#[derive(Clone, Debug)]
pub struct ToolStorage {
    /// What the workspace has.
    pub storage: kitbag_state::storage::Storage,
    /// The name of its namespace.
    pub namespace: String,
}

/// Where a tool keeps something: nowhere, since this kitbag was built without storage.
#[cfg(not(feature = "storage"))]
#[derive(Clone, Debug)]
pub enum ToolStorage {}

/// The grants of one call, and what they are opened with.
#[derive(Clone, Copy)]
pub(crate) struct GrantContext<'a> {
    /// The name under which the tool was called.
    pub(crate) tool: &'a str,
    /// The account of the call's connections.
    pub(crate) account: &'a Account,
    pub(crate) grants: &'a Arc<Grants>,
    pub(crate) guard: &'a Arc<Guard>,
    pub(crate) client: &'a Client,
    pub(crate) secrets: &'a Arc<Secrets>,
    #[cfg_attr(not(feature = "storage"), expect(dead_code, reason = "nothing is kept"))]
    pub(crate) storage: Option<&'a ToolStorage>,
    pub(crate) tools: Option<&'a ToolCalls>,
}
