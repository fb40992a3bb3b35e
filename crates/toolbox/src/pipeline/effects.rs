//! The effects that a call can have outside the sandbox.

use kitbag_config::ToolSource;
use kitbag_policy::{Access, Grants};

use crate::call::outcome::PreparedCall;

/// Returns true if a call can change or send something itself. Calls of other tools have effects of
/// their own.
///
/// Only grants are considered: a tool can declare any annotation.
pub(super) fn may_act(call: &PreparedCall) -> bool {
    match call.tool.source {
        // Neither is limited to its grants.
        ToolSource::Native | ToolSource::Server(_) => true,
        ToolSource::Builtin { .. }
        | ToolSource::Local(_)
        | ToolSource::Script(_)
        | ToolSource::Bytes(_) => allow_effects(&call.call.grants),
    }
}

fn allow_effects(grants: &Grants) -> bool {
    let directories = grants.directories.iter().filter(|grant| !grant.is_temporary());
    let writes = directories.into_iter().any(|grant| grant.access == Access::ReadWrite);
    writes || !grants.http.grants.is_empty() || grants.storage.is_some()
}
