//! The form of the files: the tables of `config.toml` and of a manifest.
//!
//! These types are the single source of truth. serde reads them, and the JSON Schema is generated
//! from them: an editor shows the comment of a field. The modules of [`crate::resolve`] define the
//! meaning of the values, and check that they fit together.

mod approve;
mod grants;
pub(crate) mod invalid_keys;
pub(crate) mod key;
mod limits;
pub(crate) mod parse;
mod registry;
pub(crate) mod schema;
mod secrets;
mod server;
pub(crate) mod span;
mod tool;

pub(crate) use approve::{ApproveConfig, ClassConfig, WhenConfig};
pub(crate) use grants::{
    CeilingGrantsConfig, ConditionConfig, DirectoryGrantConfig, GrantsConfig, HttpConfig,
    HttpGrantConfig, SecretGrantConfig, StorageConfig, ToolGrantConfig, ToolsCeilingConfig,
    ToolsConfig, VariableConfig, grants_writing,
};
pub(crate) use limits::LimitsConfig;
pub(crate) use registry::{RegistryRuleConfig, SignerConfig};
pub(crate) use secrets::{PlaceholderPart, SecretConfig};
pub(crate) use server::{ConfineConfig, ServerConfig, ServerVariableConfig};
pub(crate) use tool::{ParameterConfig, ScriptConfig, SourceConfig, ToolConfig};

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Deserialize;

use approve::ApproveTable;
use limits::CeilingConfig;
use registry::RegistryConfig;
use secrets::SecretStoreConfig;

use crate::config::{AuditSync, DiscoveryMode, NameResolution, ScreenAction};
use crate::format::span::{BoolOr, Table, Written};
use crate::layers::toolsets::TOOLSETS;

/// The configuration of kitbag: tools with their grants and limits, the server, and the knowledge
/// of a team.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Configuration of kitbag")]
pub(crate) struct ConfigFile {
    /// The limits of every tool that does not set its own.
    #[schemars(title = "Limits of all tools")]
    pub(crate) limits: Option<LimitsConfig>,
    /// The highest limits and the widest grants that the files of a workspace may set. Your user
    /// config may exceed them. User config only.
    #[serde(default)]
    #[schemars(title = "Ceilings")]
    pub(crate) ceiling: Option<CeilingConfig>,
    /// URL patterns that no tool of any workspace may request, even if a grant allows them.
    /// Patterns have the form of `http` grants and match broadly. User config only.
    #[schemars(extend("default" = [], "examples" = [["https://*.example.com", "http://10.0.0.1"]]))]
    pub(crate) deny: Option<Written<Vec<Written<String>>>>,
    /// Connections of tools: the proxy, and additional root certificates. User config only.
    #[schemars(title = "Network")]
    pub(crate) network: Option<NetworkConfig>,
    /// The audit log, which has a line for each call. User config only.
    #[schemars(title = "Audit log")]
    pub(crate) audit: Option<AuditConfig>,
    /// The calls that need your approval. User config only.
    #[schemars(title = "Approval")]
    pub(crate) approve: Option<ApproveTable>,
    /// Marks and filters for answers, applied before a model reads them. User config only.
    #[schemars(title = "Answers")]
    pub(crate) output: Option<OutputConfig>,
    /// The workspaces that you trust by path. User config only.
    #[schemars(title = "Trust")]
    pub(crate) trust: Option<TrustConfig>,
    /// Search for tools, registries of packages, and authorities for signatures. User config only.
    #[schemars(title = "Search and packages")]
    pub(crate) registry: Option<RegistryConfig>,
    /// Registries by pattern: a host, such as `ghcr.io`, or a host and a path with `*` for one level
    /// and `**` for any number, such as `ghcr.io/org/*`. User config only.
    #[schemars(title = "Registries")]
    pub(crate) registries: Option<Table<RegistryRuleConfig>>,
    /// Your secrets, by name: the source of each value and its destinations. User config only.
    #[schemars(title = "Secrets")]
    pub(crate) secrets: Option<Table<SecretConfig>>,
    /// The store of secret values. `kitbag secret set` writes this table. User config only.
    #[schemars(title = "Store of secrets")]
    pub(crate) secret_store: Option<SecretStoreConfig>,
    /// Strings that look like a key or a token but are not secret. Requests may contain them, and
    /// answers show them. User config only.
    #[schemars(extend("default" = []))]
    pub(crate) allow_leak: Option<Written<Vec<Written<AllowedLeakConfig>>>>,
    /// Files that look like secrets, by name. No tool opens, changes, moves or links them unless
    /// its grant includes them.
    #[schemars(title = "Files that look like secrets")]
    pub(crate) secret_files: Option<SecretFilesConfig>,
    /// Memory, tools and sessions of `kitbag serve`.
    #[schemars(title = "Server")]
    pub(crate) serve: Option<ServeConfig>,
    /// The built-in tools, switched on and off in groups. `enable` in the table of a tool overrides
    /// its toolset.
    #[schemars(title = "Toolsets")]
    pub(crate) toolsets: Option<ToolsetsConfig>,
    /// MCP servers whose tools kitbag offers, by name: lower-case letters, digits, `_` and `-`, at
    /// most 32 characters. Those of a workspace take effect once you trust it.
    #[schemars(title = "MCP servers")]
    pub(crate) servers: Option<Table<ServerConfig>>,
    /// The tools, by the name that a model calls: letters, digits, `_` and `-`, at most 48
    /// characters.
    #[schemars(title = "Tools")]
    pub(crate) tools: Option<Table<ToolConfig>>,
    /// The topics of the team's knowledge, by id. The tool `learn` reads them.
    #[schemars(title = "Knowledge")]
    pub(crate) knowledge: Option<Table<TopicConfig>>,
}

impl ConfigFile {
    /// Returns whether the file names the component of a tool.
    pub(crate) fn has_components(&self) -> bool {
        let mut tools = self.tools.iter().flat_map(Table::iter);
        tools.any(|entry| entry.value.value.wasm.is_some())
    }
}

/// Connections of tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Network")]
pub(crate) struct NetworkConfig {
    /// The HTTP proxy for connections: `http://HOST:PORT`, `http://USER:PASSWORD@HOST:PORT`, or
    /// `environment` for the proxies in `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY` with the
    /// exceptions in `NO_PROXY`. Connections to this machine never use it. Default: none.
    #[schemars(extend("examples" = ["http://proxy.example.com:3128", "environment"]))]
    pub(crate) proxy: Option<Written<String>>,
    /// The resolver of host names for connections through a proxy: `kitbag` checks the addresses;
    /// `proxy` skips that check. Grants of every host are always resolved and checked by kitbag.
    #[schemars(extend("default" = "kitbag"))]
    pub(crate) resolve: Option<Written<NameResolution>>,
    /// Destinations that skip the proxy: hosts, `*.example.com` for all names below a host, and IP
    /// addresses or blocks, also if a name resolves to them.
    #[schemars(extend("default" = [], "examples" = [["*.internal.example.com", "10.0.0.0/8"]]))]
    pub(crate) no_proxy: Option<Written<Vec<Written<String>>>>,
    /// PEM files with root certificates to trust in addition to the system's: absolute paths, or
    /// paths that start with `~/`.
    #[schemars(extend("default" = [], "examples" = [["~/corp-ca.pem"]]))]
    pub(crate) roots: Option<Written<Vec<Written<String>>>>,
}

/// The audit log: one line for each call, chained by hash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Audit log")]
pub(crate) struct AuditConfig {
    /// `false` turns the log off.
    #[schemars(extend("default" = true))]
    pub(crate) enable: Option<Written<bool>>,
    /// When lines are written to disk: `each` before its call is answered, `batch` within 100 ms,
    /// `none` when the operating system does it.
    #[schemars(extend("default" = "batch"))]
    pub(crate) sync: Option<Written<AuditSync>>,
    /// The largest size of the log: a number and a unit, such as `128MiB`, and at least `1MiB`. The
    /// oldest lines are removed first.
    #[schemars(extend("default" = "128MiB"))]
    pub(crate) size: Option<Written<String>>,
    /// `true` logs the arguments of calls; `false` logs only their digest.
    #[schemars(extend("default" = false))]
    pub(crate) arguments: Option<Written<bool>>,
    /// `true` refuses calls that cannot be logged; `false` warns and counts the lost lines.
    #[schemars(extend("default" = false))]
    pub(crate) required: Option<Written<bool>>,
}

/// Marks and filters for answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Answers")]
pub(crate) struct OutputConfig {
    /// `true` encloses the answers of tools that reach the network or run third-party code in marks
    /// that name them as untrusted.
    #[schemars(extend("default" = false))]
    pub(crate) fence: Option<Written<bool>>,
    /// The handling of answers that look like instructions to a model. Default: answers are not
    /// screened.
    pub(crate) screen: Option<ScreenConfig>,
}

/// The handling of answers that look like instructions to a model, by severity.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Answers that look like instructions")]
pub(crate) struct ScreenConfig {
    /// Weak signs, which many honest answers also have: `pass`, `mark` for the client, `fence` in
    /// marks, or `block`.
    #[schemars(extend("default" = "pass"))]
    pub(crate) low: Option<Written<ScreenAction>>,
    /// Signs that few honest answers have.
    #[schemars(extend("default" = "mark"))]
    pub(crate) medium: Option<Written<ScreenAction>>,
    /// Signs that almost no honest answer has.
    #[schemars(extend("default" = "fence"))]
    pub(crate) high: Option<Written<ScreenAction>>,
    /// The names of rules to skip.
    #[schemars(extend("default" = [], "examples" = [["chat-markup"]]))]
    pub(crate) except: Option<Written<Vec<Written<String>>>>,
}

/// A text that looks like a key or a token but is not secret: `fingerprint` or `rule`, and a
/// reason.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Allowed leak")]
pub(crate) struct AllowedLeakConfig {
    /// The fingerprint of one text: the 16 digits in the message about it.
    #[schemars(extend("examples" = ["9f86d081884c7d65"]))]
    pub(crate) fingerprint: Option<Written<String>>,
    /// The rule whose findings are all allowed.
    #[schemars(extend("examples" = ["json-web-token"]))]
    pub(crate) rule: Option<Written<String>>,
    /// The reason, for readers of this file. Required.
    #[schemars(extend("examples" = ["a public token of the documentation"]))]
    pub(crate) reason: Option<Written<String>>,
}

/// The workspaces that the user trusts by path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Trust")]
pub(crate) struct TrustConfig {
    /// Roots of workspaces whose configuration is read although they, or files in their `.kitbag`,
    /// belong to other users or are writable by them: absolute paths, or paths that start with
    /// `~/`. Workspaces below a root are not included; components below it are.
    #[schemars(extend("default" = [], "examples" = [["~/shared/project"]]))]
    pub(crate) directories: Option<Written<Vec<Written<String>>>>,
    /// Workspaces that are trusted with any content, without `kitbag trust`: globs of their roots,
    /// absolute or starting with `~/`. A repository cloned to such a path runs its tools with the
    /// grants that it gives them.
    #[schemars(extend("default" = [], "examples" = [["~/src/**"]]))]
    pub(crate) workspaces: Option<Written<Vec<Written<String>>>>,
}

/// Changes to the built-in list of file names that look like secrets: `.env`, private keys,
/// credential stores and the like.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Files that look like secrets")]
pub(crate) struct SecretFilesConfig {
    /// Globs of names to add to the list, for files and for directories that contain them; case is
    /// ignored. The lists of all files are combined.
    #[schemars(extend("default" = [], "examples" = [["*.tfvars"]]))]
    pub(crate) names: Option<Written<Vec<Written<String>>>>,
    /// Globs of names to remove from the list; `*` clears it. User config only.
    #[schemars(extend("default" = [], "examples" = [[".npmrc"]]))]
    pub(crate) except: Option<Written<Vec<Written<String>>>>,
}

/// Memory, tools and sessions of the server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Server")]
pub(crate) struct ServeConfig {
    /// Memory of the whole server, with its calls, components and messages: a number and a unit,
    /// such as `2GiB`, and at least `384MiB`. The files of a workspace may only lower it.
    #[schemars(extend("default" = "2GiB"))]
    pub(crate) memory: Option<Written<String>>,
    /// The tools offered to clients: names, or globs such as `search_*`. If your user config and a
    /// workspace both have a list, a tool must match both. Default: every enabled tool.
    #[schemars(extend("examples" = [["search_*", "python"]]))]
    pub(crate) tools: Option<Written<Vec<Written<String>>>>,
    /// The time after which an HTTP session ends if its client sends no request and has no open
    /// stream: a number and a unit, such as `30min`. Protocol revisions without sessions ignore it.
    /// User config only.
    #[schemars(extend("default" = "30min"))]
    pub(crate) session_idle: Option<Written<String>>,
    /// The handling of arguments that a tool's schema does not have: `drop` drops them, unless one
    /// may be a misspelled argument or a required argument is missing; `error` refuses the call.
    /// `error` in any file takes effect.
    #[schemars(extend("default" = "drop"))]
    pub(crate) unknown_arguments: Option<Written<UnknownArgumentsConfig>>,
    /// How tools are offered: `all` lists every tool; `search` lists the pinned tools, `find_tools`
    /// and `call_tool`; `auto` does the latter if the definitions need more than `tool_tokens`.
    #[schemars(extend("default" = "auto"))]
    pub(crate) discovery: Option<Written<DiscoveryMode>>,
    /// The tokens of all definitions up to which `auto` lists every tool. `kitbag list --cost`
    /// prints them.
    #[schemars(extend("default" = 16000))]
    pub(crate) tool_tokens: Option<Written<NonZeroU64>>,
    /// The tools that are listed in any case: names, or globs such as `search_*`.
    #[schemars(extend("default" = [], "examples" = [["read_file", "search_*"]]))]
    pub(crate) pinned: Option<Written<Vec<Written<String>>>>,
    /// The size of text, at least `8KiB`, above which the result of a call is kept for the session,
    /// and its start is sent: a number and a unit, such as `64KiB`.
    #[schemars(extend("default" = "64KiB"))]
    pub(crate) result_size: Option<Written<String>>,
    /// The people who may use a server over HTTP, each with a token, by name. `kitbag token add
    /// NAME` writes this table. User config only.
    #[schemars(title = "Tokens")]
    pub(crate) tokens: Option<Table<TokenConfig>>,
}

/// The token of a person, who is a caller with their own data, rates and approvals.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Token")]
pub(crate) struct TokenConfig {
    /// The SHA-256 of the token, in 64 hexadecimal digits. Required.
    pub(crate) sha256: Option<Written<String>>,
    /// The tools offered to this person, in addition to the restrictions of `tools` of `[serve]`:
    /// names, or globs such as `read_*`. `[]` offers none. Default: every tool that the server
    /// offers.
    #[schemars(extend("examples" = [["read_*", "search_*"]]))]
    pub(crate) tools: Option<Written<Vec<Written<String>>>>,
}

/// The handling of arguments that a tool's schema does not have.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum UnknownArgumentsConfig {
    /// They are dropped.
    Drop,
    /// The call is refused.
    Error,
}

/// The built-in tools, switched on and off in groups. `enable` in the table of a tool overrides its
/// toolset.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Toolsets")]
pub(crate) struct ToolsetsConfig {
    /// `true` lets built-in tools change files in the workspace. A workspace cannot switch it on if
    /// your user config switches it off.
    #[schemars(extend("default" = false))]
    pub(crate) write: Option<Written<bool>>,
    /// Read the team's knowledge. Default: on.
    pub(crate) learn: Option<Written<bool>>,
    /// Read files, and change them with `write`. Default: on in a workspace that was named, or that
    /// has `.kitbag` or `.git`, unless it contains your home directory.
    pub(crate) files: Option<Written<bool>>,
    /// Search for files, and for text in files. Default: as for `files`.
    pub(crate) search: Option<Written<bool>>,
    /// Query, validate and convert JSON, TOML, YAML and CSV. Default: on; tools that read the
    /// workspace, as for `files`.
    pub(crate) data: Option<Written<bool>>,
    /// Convert, compare and measure text. Default: as for `data`.
    pub(crate) text: Option<Written<bool>>,
    /// Calculate with dates, times and time zones: `true`, `false`, or a table with the local zone.
    /// Default: on.
    #[schemars(extend("examples" = [{ "zone": "Europe/Paris" }]))]
    pub(crate) time: Option<Written<BoolOr<TimeConfig>>>,
    /// Calculate exactly. Default: on.
    pub(crate) calc: Option<Written<bool>>,
    /// Run Python scripts. Default: as for `data`.
    pub(crate) python: Option<Written<bool>>,
    /// Read web pages that a grant allows. Default: on.
    pub(crate) fetch: Option<Written<bool>>,
    /// Store facts and tasks for later sessions. Default: off. A workspace cannot switch it on if
    /// your user config switches it off.
    pub(crate) memory: Option<Written<bool>>,
}

/// The tools for dates and times.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Dates and times")]
pub(crate) struct TimeConfig {
    /// `false` switches the tools off.
    #[schemars(extend("default" = true))]
    pub(crate) enable: Option<Written<bool>>,
    /// The local time zone, by its IANA name. Default: the variable `TZ`, otherwise none.
    #[schemars(extend("examples" = ["Europe/Paris"]))]
    pub(crate) zone: Option<Written<String>>,
}

/// A topic of the team's knowledge: a directory of documents, its subjects.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Topic")]
pub(crate) struct TopicConfig {
    /// The directory of the documents, relative to the workspace. Required.
    #[schemars(extend("examples" = ["docs/skills"]))]
    pub(crate) subjects: Option<Written<String>>,
    /// `false` turns the topic off.
    #[schemars(extend("default" = true))]
    pub(crate) enable: Option<Written<bool>>,
    /// The display name, which also selects the topic, in any case. Default: the id.
    pub(crate) title: Option<Written<String>>,
    /// One line about the topic, for the system prompt.
    pub(crate) introduction: Option<Written<String>>,
    /// A longer description, shown with the list of subjects.
    pub(crate) description: Option<Written<String>>,
    /// `true` for a directory of skills: each directory in it with a file `SKILL.md` is a skill.
    #[schemars(extend("default" = false))]
    pub(crate) skills: Option<Written<bool>>,
    /// Globs of the subjects that are part of the system prompt: `*` within a level, `**` across
    /// levels.
    #[schemars(extend("default" = []))]
    pub(crate) learned: Option<Written<Vec<Written<String>>>>,
    /// Globs, by path, of dot directories and of files that look like secrets. Other such paths are
    /// not subjects.
    #[schemars(extend("default" = []))]
    pub(crate) include: Option<Written<Vec<Written<String>>>>,
    /// Globs or exact names of subjects of this topic that can never be loaded, including hidden
    /// ones and those behind a link. They override `learned`. To switch a tool off, set `enable =
    /// false` in its own table.
    #[schemars(extend("default" = []))]
    pub(crate) disabled: Option<Written<Vec<Written<String>>>>,
}

impl ToolsetsConfig {
    /// Returns the setting of each toolset, by the names of [`TOOLSETS`].
    pub(crate) fn switches(&self) -> [(&'static str, Option<Written<bool>>); TOOLSETS.len()] {
        let Self { write: _, learn, files, search, data, text, time, calc, python, fetch, memory } =
            self;
        let [a, b, c, d, e, f, g, h, i, j] = TOOLSETS;
        let time = time.as_ref().and_then(|time| match &time.value {
            BoolOr::Short(value) => Some(Written { value: *value, span: time.span }),
            BoolOr::Other(config) => config.enable.clone(),
        });
        [
            (a, learn.clone()),
            (b, files.clone()),
            (c, search.clone()),
            (d, data.clone()),
            (e, text.clone()),
            (f, time),
            (g, calc.clone()),
            (h, python.clone()),
            (i, fetch.clone()),
            (j, memory.clone()),
        ]
    }

    pub(crate) fn zone(&self) -> Option<&Written<String>> {
        match &self.time.as_ref()?.value {
            BoolOr::Short(_) => None,
            BoolOr::Other(config) => config.zone.as_ref(),
        }
    }
}
