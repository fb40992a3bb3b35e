//! What a person types: the tables of `config.toml` and of a manifest.
//!
//! These types are the single source of truth for the form of the files. serde
//! reads them, and the JSON Schema is made from them: what stands in the
//! comments of a field is what an editor shows. What the values mean, and
//! whether they fit together, is left to [`crate::resolve`].

mod approve;
mod grants;
pub(crate) mod invalid_keys;
pub(crate) mod key;
mod limits;
pub(crate) mod parse;
pub(crate) mod schema;
mod secrets;
pub(crate) mod spanned;
mod tool;

pub(crate) use approve::{ApproveConfig, ClassConfig, WhenConfig};
pub(crate) use grants::{
    ConditionConfig, DirectoryGrantConfig, GrantsConfig, HttpConfig, HttpGrantConfig,
    SecretGrantConfig, StorageConfig, ToolGrantConfig, ToolsCeilingConfig, ToolsConfig,
    VariableConfig,
};
pub(crate) use limits::LimitsConfig;
pub(crate) use secrets::{PlaceholderPart, SecretConfig};
pub(crate) use tool::{ParameterConfig, ScriptConfig, SourceConfig, ToolConfig};

use schemars::JsonSchema;
use serde::Deserialize;

use approve::ApproveTable;
use limits::CeilingConfig;
use secrets::SecretStoreConfig;

use crate::config::{AuditSync, NameResolution, ScreenAction};
use crate::format::spanned::{BoolOr, Table, Written};
use crate::layers::toolsets::TOOLSETS;

/// What kitbag carries, what its tools may reach and use up, and what a team
/// knows.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Configuration of kitbag")]
pub(crate) struct ConfigFile {
    /// Limits of every tool that sets none of its own.
    #[schemars(title = "Limits of all tools")]
    pub(crate) limits: Option<LimitsConfig>,
    /// What the files of a workspace may set a limit to, and grant, at most. Only your own
    /// file has this table; what you set there yourself may be higher.
    #[serde(default)]
    #[schemars(title = "Ceilings")]
    pub(crate) ceiling: Option<CeilingConfig>,
    /// What no tool of any workspace may ask for over HTTP, whatever it is granted: patterns
    /// as in the grants, which are read widely. Only your own file has this key.
    #[schemars(extend("default" = [], "examples" = [["https://*.example.com", "http://10.0.0.1"]]))]
    pub(crate) deny: Option<Written<Vec<Written<String>>>>,
    /// How connections of tools are made: the proxy, and authorities besides those of the
    /// system. Only your own file has this table.
    #[schemars(title = "Network")]
    pub(crate) network: Option<NetworkConfig>,
    /// The audit log, which has a line for each call. Only your own file has this table.
    #[schemars(title = "Audit log")]
    pub(crate) audit: Option<AuditConfig>,
    /// Before which calls you are asked. Only your own file has this table.
    #[schemars(title = "Approval")]
    pub(crate) approve: Option<ApproveTable>,
    /// What becomes of answers before a model reads them. Only your own file has this table.
    #[schemars(title = "Answers")]
    pub(crate) output: Option<OutputConfig>,
    /// The workspaces that you trust by name. Only your own file has this table.
    #[schemars(title = "Trust")]
    pub(crate) trust: Option<TrustConfig>,
    /// Your secrets, by name: where the value of each comes from, and where it may go. Only
    /// your own file has this table.
    #[schemars(title = "Secrets")]
    pub(crate) secrets: Option<Table<SecretConfig>>,
    /// What keeps the values of secrets; `kitbag secret set` writes this. Only your own file
    /// has this table.
    #[schemars(title = "Store of secrets")]
    pub(crate) secret_store: Option<SecretStoreConfig>,
    /// What looks like a key or a token and is none: requests may hold it, and answers show it.
    /// Only your own file has this key.
    #[schemars(extend("default" = []))]
    pub(crate) allow_leak: Option<Written<Vec<Written<AllowedLeakConfig>>>>,
    /// Files that look like secrets, by their names: no tool opens, changes, moves or links
    /// them unless its grant includes them.
    #[schemars(title = "Files that look like secrets")]
    pub(crate) secret_files: Option<SecretFilesConfig>,
    /// What `kitbag serve` may take, and what it offers.
    #[schemars(title = "Server")]
    pub(crate) serve: Option<ServeConfig>,
    /// The built-in tools, switched on and off by groups.
    #[schemars(title = "Toolsets")]
    pub(crate) toolsets: Option<ToolsetsConfig>,
    /// The tools, by the name that a model calls them by: letters, digits, `_`
    /// and `-`, at most 48 of them.
    #[schemars(title = "Tools")]
    pub(crate) tools: Option<Table<ToolConfig>>,
    /// The topics of the team's knowledge, by id. The tool `learn` reads them.
    #[schemars(title = "Knowledge")]
    pub(crate) knowledge: Option<Table<TopicConfig>>,
}

impl ConfigFile {
    /// Whether it names the component of a tool.
    pub(crate) fn has_components(&self) -> bool {
        let mut tools = self.tools.iter().flat_map(Table::iter);
        tools.any(|entry| entry.value.value.wasm.is_some())
    }
}

/// How connections of tools are made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Network")]
pub(crate) struct NetworkConfig {
    /// The HTTP proxy through which connections go: `http://HOST:PORT`,
    /// `http://USER:PASSWORD@HOST:PORT`, or `environment` for the proxies that `HTTPS_PROXY`,
    /// `HTTP_PROXY` and `ALL_PROXY` name, and what `NO_PROXY` excepts. Connections to this
    /// machine never go through it. Default: none.
    #[schemars(extend("examples" = ["http://proxy.example.com:3128", "environment"]))]
    pub(crate) proxy: Option<Written<String>>,
    /// Who resolves the names of hosts for connections through a proxy: `kitbag`, which checks
    /// the addresses, or `proxy`, whose addresses nothing checks. Grants of every host are
    /// always resolved and checked by kitbag.
    #[schemars(extend("default" = "kitbag"))]
    pub(crate) resolve: Option<Written<NameResolution>>,
    /// What goes without the proxy: hosts, `*.example.com` for all names below one, and
    /// addresses or blocks of them, whatever name led there.
    #[schemars(extend("default" = [], "examples" = [["*.internal.example.com", "10.0.0.0/8"]]))]
    pub(crate) no_proxy: Option<Written<Vec<Written<String>>>>,
    /// Files in PEM with the certificates of authorities that are trusted besides those of
    /// the system: absolute paths, or paths that start with `~/`.
    #[schemars(extend("default" = [], "examples" = [["~/corp-ca.pem"]]))]
    pub(crate) roots: Option<Written<Vec<Written<String>>>>,
}

/// The audit log: one line for each call, of which the next one holds the hash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Audit log")]
pub(crate) struct AuditConfig {
    /// `false` logs nothing.
    #[schemars(extend("default" = true))]
    pub(crate) enable: Option<Written<bool>>,
    /// When lines are brought to the disk: `each` before its call is answered, `batch` within
    /// 100 ms, `none` when the system does it.
    #[schemars(extend("default" = "batch"))]
    pub(crate) sync: Option<Written<AuditSync>>,
    /// How large the log becomes: a number and a unit, such as `128MiB`, and at least `1MiB`.
    /// The oldest lines go.
    #[schemars(extend("default" = "128MiB"))]
    pub(crate) size: Option<Written<String>>,
    /// `true` logs the arguments of calls, and not their digest alone.
    #[schemars(extend("default" = false))]
    pub(crate) arguments: Option<Written<bool>>,
    /// `true` refuses calls while nothing can be logged. Otherwise that is a warning, and what
    /// could not be logged is counted.
    #[schemars(extend("default" = false))]
    pub(crate) required: Option<Written<bool>>,
}

/// What becomes of answers before a model reads them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Answers")]
pub(crate) struct OutputConfig {
    /// `true` puts the answers of tools that reach the network or run foreign code between marks
    /// that say so.
    #[schemars(extend("default" = false))]
    pub(crate) fence: Option<Written<bool>>,
    /// What becomes of answers that look like instructions to a model. Default: they are not
    /// looked for.
    pub(crate) screen: Option<ScreenConfig>,
}

/// What becomes of answers that look like instructions to a model, by how sure that is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Answers that look like instructions")]
pub(crate) struct ScreenConfig {
    /// Of what many honest texts have, too: `pass`, `mark` for the client, `fence` in marks, or
    /// `block`.
    #[schemars(extend("default" = "pass"))]
    pub(crate) low: Option<Written<ScreenAction>>,
    /// Of what some have.
    #[schemars(extend("default" = "mark"))]
    pub(crate) medium: Option<Written<ScreenAction>>,
    /// Of what hardly anything else has.
    #[schemars(extend("default" = "fence"))]
    pub(crate) high: Option<Written<ScreenAction>>,
    /// The names of rules that are not looked for.
    #[schemars(extend("default" = [], "examples" = [["chat-markup"]]))]
    pub(crate) except: Option<Written<Vec<Written<String>>>>,
}

/// What looks like a key or a token and is none: one of `fingerprint` and `rule`, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Allowed leak")]
pub(crate) struct AllowedLeakConfig {
    /// The one text that is meant, by the 16 digits that the message about it names.
    #[schemars(extend("examples" = ["9f86d081884c7d65"]))]
    pub(crate) fingerprint: Option<Written<String>>,
    /// Everything that this rule finds.
    #[schemars(extend("examples" = ["json-web-token"]))]
    pub(crate) rule: Option<Written<String>>,
    /// Why it is no key, for who reads this file. Required.
    #[schemars(extend("examples" = ["a public token of the documentation"]))]
    pub(crate) reason: Option<Written<String>>,
}

/// The workspaces that the user trusts by name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Trust")]
pub(crate) struct TrustConfig {
    /// Roots of workspaces whose configuration counts although they, or files in
    /// their `.kitbag`, belong to other users or can be written by them: absolute
    /// paths, or paths that start with `~/`. Workspaces below are not meant. Components
    /// count that lie in such a directory, or below.
    #[schemars(extend("default" = [], "examples" = [["~/shared/project"]]))]
    pub(crate) directories: Option<Written<Vec<Written<String>>>>,
    /// Workspaces whose files count whatever they hold, without `kitbag trust`: globs of their
    /// roots, absolute or with `~/`. What is cloned there runs its tools with the grants that
    /// it gives them.
    #[schemars(extend("default" = [], "examples" = [["~/src/**"]]))]
    pub(crate) workspaces: Option<Written<Vec<Written<String>>>>,
}

/// Files that look like secrets, by their names. There is a list of them: `.env`, private
/// keys, credential stores and the like.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Files that look like secrets")]
pub(crate) struct SecretFilesConfig {
    /// Globs of names besides those on the list, of files and of directories that hold
    /// them, in any case. Those of every file count.
    #[schemars(extend("default" = [], "examples" = [["*.tfvars"]]))]
    pub(crate) names: Option<Written<Vec<Written<String>>>>,
    /// Globs of names that are no secrets after all; `*` clears the whole list. Only your
    /// own file has this key.
    #[schemars(extend("default" = [], "examples" = [[".npmrc"]]))]
    pub(crate) except: Option<Written<Vec<Written<String>>>>,
}

/// What `kitbag serve` may take, and what it offers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Server")]
pub(crate) struct ServeConfig {
    /// Memory of the whole server: its calls, components and messages together. A
    /// number and a unit, such as `2GiB`, and at least `384MiB`. The files of a
    /// workspace may only lower it.
    #[schemars(extend("default" = "2GiB"))]
    pub(crate) memory: Option<Written<String>>,
    /// The tools that clients are offered: names, or globs such as `search_*`. Where your
    /// own file and that of a workspace both have a list, both count. Default: every tool
    /// that is on.
    #[schemars(extend("examples" = [["search_*", "python"]]))]
    pub(crate) tools: Option<Written<Vec<Written<String>>>>,
    /// The time after which a session over HTTP ends if its client sends nothing and has no
    /// stream open: a number and a unit, such as `30min`. Clients that speak a revision without
    /// sessions are not affected. Only in your own file.
    #[schemars(extend("default" = "30min"))]
    pub(crate) session_idle: Option<Written<String>>,
    /// The handling of arguments that a tool's schema does not know: `drop` drops them, unless
    /// one may be a misspelled argument or a required argument is missing, and `error` refuses
    /// the call. If any file says `error`, that is in effect.
    #[schemars(extend("default" = "drop"))]
    pub(crate) unknown_arguments: Option<Written<UnknownArgumentsConfig>>,
}

/// The handling of arguments that a tool's schema does not know.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum UnknownArgumentsConfig {
    /// They are dropped.
    Drop,
    /// The call is refused.
    Error,
}

/// The built-in tools, switched on and off by groups. `enable` in the table of a tool is
/// stronger.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Toolsets")]
pub(crate) struct ToolsetsConfig {
    /// The built-in tools that change files do so in the workspace. What your own file
    /// switches off here, the files of a workspace do not switch on.
    #[schemars(extend("default" = false))]
    pub(crate) write: Option<Written<bool>>,
    /// Read the team's knowledge. Default: on.
    pub(crate) learn: Option<Written<bool>>,
    /// Read files, and with `write` change them. Default: on in a workspace that was named,
    /// or found by `.kitbag` or `.git`, and that does not hold your home directory.
    pub(crate) files: Option<Written<bool>>,
    /// Find files, and text in them. Default: as for `files`.
    pub(crate) search: Option<Written<bool>>,
    /// Query, check and convert JSON, TOML, YAML and CSV. Default: on; tools that read the
    /// workspace as for `files`.
    pub(crate) data: Option<Written<bool>>,
    /// Convert, compare and measure text. Default: as for `data`.
    pub(crate) text: Option<Written<bool>>,
    /// Dates, times and time zones: `true`, `false`, or a table with the local zone. Default:
    /// on.
    #[schemars(extend("examples" = [{ "zone": "Europe/Paris" }]))]
    pub(crate) time: Option<Written<BoolOr<TimeConfig>>>,
    /// Exact arithmetic. Default: on.
    pub(crate) calc: Option<Written<bool>>,
    /// Run Python scripts. Default: as for `data`.
    pub(crate) python: Option<Written<bool>>,
    /// Read pages of the web, where a grant says which. Default: on.
    pub(crate) fetch: Option<Written<bool>>,
    /// Remember facts and tasks, which later sessions read. Default: off. What your own file
    /// switches off here, the files of a workspace do not switch on.
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
    /// The local time zone, by its IANA name. Default: the variable `TZ`, else none.
    #[schemars(extend("examples" = ["Europe/Paris"]))]
    pub(crate) zone: Option<Written<String>>,
}

/// A topic of the team's knowledge: a directory of documents, its subjects.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Topic")]
pub(crate) struct TopicConfig {
    /// The directory of the documents: a path, relative to the workspace.
    /// Required.
    #[schemars(extend("examples" = ["docs/skills"]))]
    pub(crate) subjects: Option<Written<String>>,
    /// `false` takes the topic away.
    #[schemars(extend("default" = true))]
    pub(crate) enable: Option<Written<bool>>,
    /// A display name, by which the topic can be asked for too, in any case.
    /// Default: the id.
    pub(crate) title: Option<Written<String>>,
    /// One line about the topic, for the system prompt.
    pub(crate) introduction: Option<Written<String>>,
    /// More about the topic, shown where its subjects are listed.
    pub(crate) description: Option<Written<String>>,
    /// Globs of the subjects that are in the system prompt already: `*` within
    /// a level, `**` across levels.
    #[schemars(extend("default" = []))]
    pub(crate) learned: Option<Written<Vec<Written<String>>>>,
    /// Globs of dot directories and of files that look like secrets, by their paths:
    /// without this they are no subjects.
    #[schemars(extend("default" = []))]
    pub(crate) include: Option<Written<Vec<Written<String>>>>,
    /// Globs or exact names of subjects that can never be loaded, hidden ones among
    /// them, and not through a link either; they beat `learned`. This holds for the
    /// subjects of this topic and for nothing else: a tool is switched off by `enable =
    /// false` in its own table.
    #[schemars(extend("default" = []))]
    pub(crate) disabled: Option<Written<Vec<Written<String>>>>,
}

impl ToolsetsConfig {
    /// What a file says of each toolset, by the names of [`TOOLSETS`].
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

    /// The local time zone.
    pub(crate) fn zone(&self) -> Option<&Written<String>> {
        match &self.time.as_ref()?.value {
            BoolOr::Short(_) => None,
            BoolOr::Other(config) => config.zone.as_ref(),
        }
    }
}
