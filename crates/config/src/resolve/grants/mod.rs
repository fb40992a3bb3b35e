//! Grants: what a tool may reach, by kind.
//!
//! What the values of a kind mean is a file beside this one. The form of each is in
//! [`crate::format`].

pub(super) mod beyond;
mod call;
pub(super) mod ceiling;
mod config_values;
mod environment;
mod filesystem;
pub(super) mod http;
mod secrets;
mod storage;
mod tools;
mod typed;

use kitbag_contract::ToolName;

use self::beyond::Code;
use super::resolver::Resolver;
use crate::config::ConfiguredGrants;
use crate::format::GrantsConfig;
use crate::format::spanned::{At, Written};
use crate::read::file::Layer;
use crate::read::sources::BuiltinTool;

impl Resolver<'_> {
    /// What a tool may reach, by what each layer says of it, the weakest first. Whether
    /// it is there is looked at only where the tool is enabled. A built-in has its
    /// declaration as its default. `name` is that of the tool, and `code` says whose component
    /// gets them.
    ///
    /// One rule holds for every kind but `config`, whose values are merged by key: the
    /// strongest layer that has the kind counts alone. Of a kind with a ceiling, what a
    /// workspace's file says counts entry by entry, within that ceiling or within what the
    /// user's own file grants the tool.
    pub(super) fn grants(
        &mut self,
        name: &ToolName,
        layers: Vec<At<'_, GrantsConfig>>,
        is_enabled: bool,
        builtin: Option<&BuiltinTool<'_>>,
        code: Code,
    ) -> ConfiguredGrants {
        let mut grants = ConfiguredGrants::none(code == Code::Workspace);
        let directories = of_kind(&layers, |grants| grants.filesystem.as_ref());
        let directories = self.directories(directories, is_enabled, builtin);
        grants.set(|grants| &mut grants.directories, directories);
        let http = of_kind(&layers, |grants| grants.http.as_ref());
        self.http(http, is_enabled, code, &mut grants);
        let denied = of_kind(&layers, |grants| grants.deny.as_ref());
        self.tool_denies(denied, &mut grants);
        let variables = of_kind(&layers, |grants| grants.env.as_ref());
        let placeholders = self.variables(variables, is_enabled, code, &mut grants);
        self.config_values(&of_kind(&layers, |grants| grants.config.as_ref()), &mut grants);
        let secrets = of_kind(&layers, |grants| grants.secrets.as_ref());
        self.secret_grants(secrets, placeholders, is_enabled, code, &mut grants);
        let storage = of_kind(&layers, |grants| grants.storage.as_ref());
        self.storage(storage, is_enabled, builtin, code, &mut grants);
        let tools = of_kind(&layers, |grants| grants.tools.as_ref());
        self.callable_tools(tools, name, is_enabled, builtin, code, &mut grants);
        grants
    }
}

/// The layer of the configuration whose grants let a tool change files. `layers` are as in
/// [`Resolver::grants`].
pub(super) fn writes(layers: &[At<'_, GrantsConfig>]) -> Option<Layer> {
    let effective = of_kind(layers, |grants| grants.filesystem.as_ref()).pop()?;
    filesystem::writes(effective.value).then(|| effective.file.layer())
}

/// Whether configuration says which directories a tool may reach.
pub(super) fn names_directories(layers: &[At<'_, GrantsConfig>]) -> bool {
    !of_kind(layers, |grants| grants.filesystem.as_ref()).is_empty()
}

/// What each layer says of a kind of grant, the weakest first.
fn of_kind<'a, T>(
    layers: &[At<'a, GrantsConfig>],
    kind: impl Fn(&'a GrantsConfig) -> Option<&'a Written<T>>,
) -> Vec<At<'a, T>> {
    layers.iter().filter_map(|grants| grants.inner(&kind)).collect()
}
