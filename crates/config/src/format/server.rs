//! The form of MCP servers in a file.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Deserialize;

use super::approve::ApproveConfig;
use crate::format::span::{StringOr, Table, Written};
use crate::report::Span;

/// An MCP server whose tools kitbag offers: a process that kitbag starts (`command`), or a remote
/// server (`url`). `kitbag add` writes this table and records the tools of the server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "MCP server")]
pub(crate) struct ServerConfig {
    /// The program and its arguments, run without a shell. A program without a slash is found
    /// through `PATH` when the server starts. A string is split into words at spaces; quotes and
    /// backslashes work as in a shell, and nothing is expanded.
    #[schemars(extend("examples" = [["mcp-server-sqlite", "--db-path", "data/app.db"]]))]
    pub(crate) command: Option<Written<CommandConfig>>,
    /// The working directory of the process. Default: the workspace, or your home directory for a
    /// server in your user config. Relative paths in this table are relative to the same directory.
    #[schemars(extend("examples" = ["services/db"]))]
    pub(crate) directory: Option<Written<String>>,
    /// The variables of the process besides `PATH`, `HOME` and `LANG`: a name, which is inherited
    /// from kitbag's environment, `{ name = "…", value = "…" }`, or `{ name = "…", secret = "…" }`.
    #[schemars(extend(
        "default" = [],
        "examples" = [["TZ", { "name": "DB_TOKEN", "secret": "db" }]]
    ))]
    pub(crate) env: Option<Written<Vec<Written<StringOr<ServerVariableConfig>>>>>,
    /// The confinement of the process. Default: none, so that the process has all of your rights.
    pub(crate) confine: Option<Written<ConfineConfig>>,
    /// The URL of the MCP endpoint of a remote server.
    #[schemars(extend("examples" = ["https://mcp.example.com/mcp"]))]
    pub(crate) url: Option<Written<String>>,
    /// The secret that is added to each request to a remote server, by `as` of `[secrets.NAME]`.
    pub(crate) secret: Option<Written<String>>,
    /// Further headers of each request to a remote server. They are shown in plain text, so do not
    /// put secrets here.
    #[schemars(extend("default" = {}, "examples" = [{ "X-Org": "5" }]))]
    pub(crate) headers: Option<Table<String>>,
    /// Blocks of IP addresses that the host of a remote server may have in addition to public ones,
    /// for a server in a private network.
    #[schemars(extend("default" = [], "examples" = [["10.0.0.0/8"]]))]
    pub(crate) addresses: Option<Written<Vec<Written<String>>>>,
    /// The tools to offer, by the server's names: names, or globs such as `search_*`. If your user
    /// config and a workspace both have a list, a tool must match both. Default: every tool.
    #[schemars(extend("examples" = [["search_*", "page_*"]]))]
    pub(crate) tools: Option<Written<Vec<Written<String>>>>,
    /// The start of the names of its tools: `db` makes `query` the tool `db_query`. Empty: the
    /// tools have the server's names. Default: the name of this table.
    pub(crate) prefix: Option<Written<String>>,
    /// `false` turns the server off.
    #[schemars(extend("default" = true))]
    pub(crate) enable: Option<Written<bool>>,
    /// The calls of its tools that need approval, as in the table of a tool. `approve` in the table
    /// of a tool replaces it.
    pub(crate) approve: Option<Written<ApproveConfig>>,
    /// The time after which the server ends if no call uses it: a number and a unit.
    #[schemars(extend("default" = "10min"))]
    pub(crate) idle: Option<Written<String>>,
}

/// A program and its arguments: a list, or one string.
pub(crate) type CommandConfig = StringOr<Vec<Written<String>>>;

/// A variable in the environment of a server: `value` or `secret`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Variable of a server")]
pub(crate) struct ServerVariableConfig {
    /// The name.
    pub(crate) name: Written<String>,
    /// The value, which is shown in plain text.
    pub(crate) value: Option<Written<String>>,
    /// The secret whose value the process receives.
    pub(crate) secret: Option<Written<String>>,
}

/// The confinement of a process. Programs and libraries of the system can always be read and run,
/// and it has a temporary directory of its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Confinement")]
pub(crate) struct ConfineConfig {
    /// Files and directories that the process may read: paths relative to the workspace, or in your
    /// user config to your home directory; absolute paths, or paths that start with `~/`.
    #[schemars(extend("default" = [], "examples" = [["."]]))]
    pub(crate) read: Option<Written<Vec<Written<String>>>>,
    /// Files and directories that the process may read and write.
    #[schemars(extend("default" = [], "examples" = [["data"]]))]
    pub(crate) write: Option<Written<Vec<Written<String>>>>,
    /// `true` lets the process use the network.
    #[schemars(extend("default" = false))]
    pub(crate) network: Option<Written<bool>>,
    /// The memory of each process: a number and a unit, such as `512MiB`. Default: unlimited.
    #[schemars(extend("examples" = ["512MiB"]))]
    pub(crate) memory: Option<Written<String>>,
    /// The number of processes and threads. Default: unlimited.
    #[schemars(extend("examples" = [64]))]
    pub(crate) processes: Option<Written<NonZeroU64>>,
}

impl ServerConfig {
    /// Returns whether the table defines a server. Other tables only narrow one of another file.
    pub(crate) fn makes_server(&self) -> bool {
        self.command.is_some() || self.url.is_some()
    }

    /// Returns the keys of a table that defines a server, with their places.
    pub(crate) fn definition_keys(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let Self {
            command,
            directory,
            env,
            confine,
            url,
            secret,
            headers,
            addresses,
            prefix,
            idle,
            // They narrow a server of another file.
            tools: _,
            enable: _,
            approve: _,
        } = self;
        let header = headers.as_ref().and_then(|headers| headers.iter().next());
        let spans = [
            ("command", command.as_ref().map(|written| written.span)),
            ("directory", directory.as_ref().map(|written| written.span)),
            ("env", env.as_ref().map(|written| written.span)),
            ("confine", confine.as_ref().map(|written| written.span)),
            ("url", url.as_ref().map(|written| written.span)),
            ("secret", secret.as_ref().map(|written| written.span)),
            ("headers", header.map(|entry| entry.key.span)),
            ("addresses", addresses.as_ref().map(|written| written.span)),
            ("prefix", prefix.as_ref().map(|written| written.span)),
            ("idle", idle.as_ref().map(|written| written.span)),
        ];
        spans.into_iter().filter_map(|(key, span)| Some((key, span?)))
    }
}
