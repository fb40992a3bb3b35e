//! Grants: what a tool may reach, by kind.
//!
//! This file is the one list of kinds in this crate. The form of a kind, and what its
//! values mean, is a file beside it.

mod call;
pub(crate) mod ceiling;
mod config_values;
mod environment;
mod filesystem;
pub(super) mod http;
mod secrets;
mod storage;
mod tools;

use kitbag_contract::ToolName;
use schemars::JsonSchema;
use serde::Deserialize;

use self::ceiling::Code;
use self::environment::VariableConfig;
use self::filesystem::DirectoryGrantConfig;
use self::http::HttpConfig;
use self::secrets::SecretGrantConfig;
use self::storage::StorageConfig;
pub(super) use self::tools::ConditionConfig;
use self::tools::ToolsConfig;
use super::resolver::Resolver;
use crate::config::ToolGrants;
use crate::file::Layer;
use crate::sources::BuiltinTool;
use crate::written::{At, Table, Written};

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
    /// Requests over HTTP: a pattern, which is granted for `GET` and `HEAD`, or a table. Those
    /// of a workspace's file count within `[ceiling.grants]` of your own.
    #[schemars(extend("default" = [], "examples" = [["https://api.github.com/**"]]))]
    pub(crate) http: Option<Written<HttpConfig>>,
    /// What the tool must not ask for over HTTP, whatever it is granted: patterns as in `http`,
    /// which are read widely. Those of every file count.
    #[schemars(extend("default" = [], "examples" = [["https://internal.example.com"]]))]
    pub(crate) deny: Option<Written<Vec<Written<String>>>>,
    /// Variables of your environment, by exact name: the tool finds them in its own. One that
    /// is not set is left out. `{ name = "GITHUB_TOKEN", secret = "github" }` holds a
    /// placeholder of a secret. Those of a workspace's file count within `[ceiling.grants]` of
    /// your own.
    #[schemars(extend("default" = [], "examples" = [["LANG", "CI"]]))]
    pub(crate) env: Option<Written<Vec<Written<VariableConfig>>>>,
    /// Configuration values, by key: the tool reads them by `wasi:config`. They are shown
    /// to everyone, so this is no place for secrets.
    #[schemars(extend("default" = {}, "examples" = [{ "api_version": "2022-11-28" }]))]
    pub(crate) config: Option<Written<Table<String>>>,
    /// Your secrets, by name: the host adds them to requests of the tool for their places,
    /// where it has a grant of HTTP, too. Those of a workspace's file count within
    /// `[ceiling.grants]` of your own.
    #[schemars(extend("default" = {}, "examples" = [{ "github": {} }]))]
    pub(crate) secrets: Option<Written<Table<SecretGrantConfig>>>,
    /// What the tool may keep between its calls, by `wasi:keyvalue`: `true` for 16 MiB and
    /// 10,000 keys, or a table. Beyond that, what a workspace's file says counts within
    /// `[ceiling.grants]` of your own.
    #[schemars(extend("default" = false, "examples" = [true, { "quota": "32MiB" }]))]
    pub(crate) storage: Option<Written<StorageConfig>>,
    /// Other tools that the tool may call, by aliases: `search = "search_files"`, or a table
    /// with `tool`, `where` and `rate`. `"caller"` is whatever its caller may call. Those of a
    /// workspace's file count within `[ceiling.grants]` of your own.
    #[schemars(extend("default" = {}, "examples" = [{ "search": "search_files" }, "caller"]))]
    pub(crate) tools: Option<Written<ToolsConfig>>,
}

impl GrantsConfig {
    /// What counts of it where it says it of a tool that is there without it, in a workspace
    /// that is not trusted. The rest is narrowed where it is resolved.
    pub(crate) fn narrowed(self) -> Self {
        let Self { filesystem, http, env, config: _, secrets, storage, tools, deny } = self;
        let filesystem = filesystem.map(filesystem::narrowed);
        // A value of `config` could send a tool of the user's somewhere else.
        Self { filesystem, http, env, config: None, secrets, storage, tools, deny }
    }
}

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
    ) -> ToolGrants {
        let mut grants = ToolGrants::default();
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
