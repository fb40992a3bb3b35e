//! Grants: what a tool may reach, by kind.
//!
//! This file is the one list of kinds in this crate. The form of a kind, and what its
//! values mean, is a file beside it.

pub(super) mod filesystem;

use schemars::JsonSchema;
use serde::Deserialize;

use self::filesystem::DirectoryGrantConfig;
use super::{Resolver, all};
use crate::config::ToolGrants;
use crate::format::ToolConfig;
use crate::sources::BuiltinTool;
use crate::written::{At, Part, Written};

/// What a tool may reach. What is not granted is not there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Grants")]
pub(crate) struct GrantsConfig {
    /// Directories. Default for a local tool: the workspace, read-only, at
    /// `/workspace`; a built-in has what it needs. Any list, even an empty one, replaces
    /// that.
    #[schemars(extend("default" = [{ "host": ".", "guest": "/workspace", "mode": "ro" }]))]
    pub(crate) filesystem: Option<Written<Vec<Written<DirectoryGrantConfig>>>>,
}

impl Resolver<'_> {
    /// What a tool may reach. Whether it is there is looked at only where the tool is
    /// enabled. A built-in has its declaration as its default.
    pub(super) fn grants(
        &mut self,
        parts: &[Part<'_, ToolConfig>],
        is_enabled: bool,
        builtin: Option<&BuiltinTool<'_>>,
    ) -> ToolGrants {
        let mut grants = ToolGrants::default();
        let filesystem = layers(parts, |grants| grants.filesystem.as_ref());
        let filesystem = self.directories(filesystem, is_enabled, builtin);
        grants.set(|grants| &mut grants.directories, filesystem);
        grants
    }

    /// What a built-in may reach of which configuration says nothing.
    pub(super) fn default_grants(&mut self, builtin: &BuiltinTool<'_>) -> ToolGrants {
        self.grants(&[], true, Some(builtin))
    }
}

/// What each layer says of a kind of grant, the weakest first.
fn layers<'a, T>(
    parts: &[Part<'a, ToolConfig>],
    kind: impl Fn(&'a GrantsConfig) -> Option<&'a Written<T>>,
) -> Vec<At<'a, T>> {
    let grants = all(parts, |tool| tool.grants.as_ref());
    grants.filter_map(|grants| grants.inner(&kind)).collect()
}
