//! What a person types: the tables of `config.toml` and of a manifest.
//!
//! These types are the single source of truth for the form of the files. serde
//! reads them, and the JSON Schema is made from them: what stands in the
//! comments of a field is what an editor shows. What the values mean, and
//! whether they fit together, is left to [`crate::resolve`], and the form of a kind of
//! grant to its file there.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::ParameterType;
use crate::file::SourceFile;
use crate::limit_set::LimitSet;
use crate::resolve::allowed_leaks::AllowedLeakConfig;
use crate::resolve::approve::{ApproveConfig, ApproveTable};
use crate::resolve::audit::AuditConfig;
use crate::resolve::grants::GrantsConfig;
use crate::resolve::grants::ceiling::CeilingGrantsConfig;
use crate::resolve::network::NetworkConfig;
use crate::resolve::output::OutputConfig;
use crate::resolve::secrets::{SecretConfig, SecretStoreConfig};
use crate::toolsets::TOOLSETS;
use crate::written::{AnyValue, At, Table, Written};

/// What kitbag carries, what its tools may reach and use up, and what a team
/// knows.
#[derive(Debug, Deserialize, JsonSchema)]
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

/// A tool: one that is built in, or one of your own. The manifest `NAME.toml`
/// beside `.kitbag/tools/NAME.wasm` has the same keys, without `source`,
/// `builtin`, `wasm`, `script` and `dev`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Tool")]
pub(crate) struct ToolConfig {
    /// Where the tool comes from. Required, unless the name is a built-in's.
    pub(crate) source: Option<Written<SourceConfig>>,
    /// The built-in that this name stands for, which it then has no longer
    /// under its own. Default: the built-in of this name.
    pub(crate) builtin: Option<Written<String>>,
    /// The built-in tool that a local tool or a script replaces, most often the one of its own
    /// name. Without this key no such tool has a built-in's name.
    #[schemars(extend("examples" = ["search_files"]))]
    pub(crate) replaces: Option<Written<String>>,
    /// The component of a local tool: a path, relative to the workspace. It
    /// starts with `~/` where it is in your home directory.
    #[schemars(extend("examples" = [".kitbag/tools/word_count.wasm"]))]
    pub(crate) wasm: Option<Written<String>>,
    /// The script in `.kitbag/scripts` that the tool is, by its name there, which it then has
    /// no longer. Default: the script of the tool's own name.
    #[schemars(extend("examples" = ["word_stats"]))]
    pub(crate) script: Option<Written<String>>,
    /// What the tool is called where a person reads it.
    pub(crate) title: Option<Written<String>>,
    /// What the tool does and when to use it, for the model. Default: what the
    /// tool says of itself.
    pub(crate) description: Option<Written<String>>,
    /// `false` takes the tool away.
    #[schemars(extend("default" = true))]
    pub(crate) enable: Option<Written<bool>>,
    /// The arguments that a local tool or a script takes, by name. Default: what the tool
    /// says of itself.
    pub(crate) parameters: Option<Written<Table<ParameterConfig>>>,
    /// What the tool may reach.
    pub(crate) grants: Option<Written<GrantsConfig>>,
    /// What one call may use up. Default: the limits of all tools.
    pub(crate) limits: Option<LimitsConfig>,
    /// How often each caller may call the tool: calls in a time, `s`, `min`, `h` or `d`. So
    /// many may come at once, and then one whenever its part of the time is over. Of several
    /// files the lowest counts for each time. Default: as often as they like.
    #[schemars(extend("examples" = ["60/min", "10/min, 100/h"]))]
    pub(crate) rate: Option<Written<String>>,
    /// `true` for a local tool that you build yourself: a component that was built anew runs
    /// without `kitbag update`, as long as it asks for no more than `kitbag.lock` has of it. Only
    /// your own file has this key.
    #[schemars(extend("default" = false))]
    pub(crate) dev: Option<Written<bool>>,
    /// Before which calls a person is asked: `never`, `always`, `on-write` for a tool that can
    /// change something, or with which arguments. The files of a workspace, and what the tool
    /// says of itself, add to what your own file says and take nothing away. Default: `default`
    /// of `[approve]`, else `never`.
    pub(crate) approve: Option<Written<ApproveConfig>>,
    /// Answers to the tool's questions, by the question's id. A question
    /// that is answered here is not asked.
    pub(crate) answers: Option<Table<AnyValue>>,
}

impl ToolConfig {
    /// Whether it says which tool it is, or what that is: it makes a tool, and does not only
    /// rule one that is there.
    pub(crate) fn makes_tool(&self) -> bool {
        let Self {
            source,
            builtin,
            replaces,
            wasm,
            script,
            title,
            description,
            enable: _,
            parameters,
            grants: _,
            limits: _,
            rate: _,
            dev: _,
            approve: _,
            answers: _,
        } = self;
        let texts = [builtin, replaces, wasm, script, title, description];
        source.is_some() || parameters.is_some() || texts.iter().any(|text| text.is_some())
    }
}

impl ConfigFile {
    /// Whether it names the component of a tool.
    pub(crate) fn has_components(&self) -> bool {
        let mut tools = self.tools.iter().flat_map(Table::iter);
        tools.any(|entry| entry.value.value.wasm.is_some())
    }
}

/// The header of a script.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Header of a script")]
pub(crate) struct ScriptConfig {
    /// What the tool is called where a person reads it.
    pub(crate) title: Option<Written<String>>,
    /// What the tool does and when to use it, for the model. Default: the docstring.
    pub(crate) description: Option<Written<String>>,
    /// The arguments that it takes, by name: each is a variable of the script. Default: none.
    pub(crate) parameters: Option<Written<Table<ParameterConfig>>>,
    /// What its answer is, where that is JSON: it prints nothing and ends with a value.
    pub(crate) output: Option<Written<ParameterConfig>>,
    /// What it would like to be granted. It grants nothing.
    pub(crate) grants: Option<Written<Table<AnyValue>>>,
    /// Before which calls a person is asked: `always`, `on-write` for one that can change
    /// something, or with which arguments. Default: as the configuration says.
    pub(crate) approve: Option<Written<ApproveConfig>>,
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SourceConfig {
    /// It is part of kitbag.
    Builtin,
    /// It is a component of your own; `wasm` says where.
    Local,
}

/// An argument of a tool, or a part of one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Parameter", title = "Parameter")]
pub(crate) struct ParameterConfig {
    /// The type of its value. Default: any JSON value.
    #[serde(rename = "type")]
    pub(crate) kind: Option<Written<ParameterType>>,
    /// What it means, for the model.
    pub(crate) description: Option<Written<String>>,
    /// Whether a call without it is refused.
    #[schemars(extend("default" = false))]
    pub(crate) required: Option<Written<bool>>,
    /// The value that it has where a call does not give one.
    pub(crate) default: Option<Written<AnyValue>>,
    /// The values that it takes. Default: every one of its type.
    #[serde(rename = "enum")]
    pub(crate) choices: Option<Written<Vec<Written<AnyValue>>>>,
    /// What each element of an array is. Default: anything.
    pub(crate) items: Option<Written<Box<ParameterConfig>>>,
    /// The keys that an object has, and no others. Default: any.
    pub(crate) properties: Option<Written<Table<ParameterConfig>>>,
}

/// What one call may use up.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Limits")]
pub(crate) struct LimitsConfig {
    /// Memory of the call: a number and a unit, such as `64MiB`.
    #[schemars(extend("default" = "64MiB"))]
    pub(crate) memory: Option<Written<String>>,
    /// Time from start to end: a number and a unit, such as `30s` or `500ms`.
    #[schemars(extend("default" = "30s"))]
    pub(crate) time: Option<Written<String>>,
    /// Size of what the tool answers: a number and a unit, such as `1MiB`.
    #[schemars(extend("default" = "1MiB"))]
    pub(crate) output: Option<Written<String>>,
    /// Size of what the tool writes to files in a call: a number and a unit, such as
    /// `1GiB`. Each file, directory or link that it creates counts 4 KiB.
    #[schemars(extend("default" = "1GiB"))]
    pub(crate) written: Option<Written<String>>,
    /// Requests over HTTP of the call, with each hop of a redirect: a positive integer, such
    /// as `100`.
    #[schemars(extend("default" = 50))]
    pub(crate) requests: Option<Written<NonZeroU64>>,
    /// Calls of other tools of the call: a positive integer, such as `100`.
    #[schemars(extend("default" = 20))]
    pub(crate) tool_calls: Option<Written<NonZeroU64>>,
    /// WebAssembly instructions of the call, counted the same on every machine:
    /// a positive integer, such as `1000000`. Default: they are not counted.
    pub(crate) fuel: Option<Written<NonZeroU64>>,
    /// Time for compiling the tool's component, where that has to be done: a number and
    /// a unit, such as `5m`. It does not count towards `time`.
    #[schemars(extend("default" = "1m"))]
    pub(crate) compile: Option<Written<String>>,
}

/// What the files of a workspace may set a limit to, and grant, at most.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Ceilings")]
pub(crate) struct CeilingConfig {
    /// Memory of the call: a number and a unit, such as `64MiB`.
    #[schemars(extend("default" = "64MiB"))]
    pub(crate) memory: Option<Written<String>>,
    /// Time from start to end: a number and a unit, such as `30s` or `500ms`.
    #[schemars(extend("default" = "30s"))]
    pub(crate) time: Option<Written<String>>,
    /// Size of what the tool answers: a number and a unit, such as `1MiB`.
    #[schemars(extend("default" = "1MiB"))]
    pub(crate) output: Option<Written<String>>,
    /// Size of what the tool writes to files in a call: a number and a unit, such as
    /// `1GiB`. Each file, directory or link that it creates counts 4 KiB.
    #[schemars(extend("default" = "1GiB"))]
    pub(crate) written: Option<Written<String>>,
    /// Requests over HTTP of the call, with each hop of a redirect: a positive integer, such
    /// as `100`.
    #[schemars(extend("default" = 50))]
    pub(crate) requests: Option<Written<NonZeroU64>>,
    /// Calls of other tools of the call: a positive integer, such as `100`.
    #[schemars(extend("default" = 20))]
    pub(crate) tool_calls: Option<Written<NonZeroU64>>,
    /// WebAssembly instructions of the call: a positive integer, such as `1000000`.
    /// Also the budget of a tool that has none. Default: no ceiling.
    pub(crate) fuel: Option<Written<NonZeroU64>>,
    /// Time for compiling the tool's component, where that has to be done: a number and
    /// a unit, such as `5m`. It does not count towards `time`.
    #[schemars(extend("default" = "1m"))]
    pub(crate) compile: Option<Written<String>>,
    /// What the files and components of a trusted workspace can be granted of what is yours,
    /// at most. A kind that is not named here is not limited.
    pub(crate) grants: Option<Written<CeilingGrantsConfig>>,
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
    /// Dates, times and time zones. Default: on.
    pub(crate) time: Option<Written<bool>>,
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
    pub(crate) fn switches(&self) -> [(&'static str, &Option<Written<bool>>); TOOLSETS.len()] {
        let Self { write: _, learn, files, search, data, text, time, calc, python, fetch, memory } =
            self;
        let [a, b, c, d, e, f, g, h, i, j] = TOOLSETS;
        [
            (a, learn),
            (b, files),
            (c, search),
            (d, data),
            (e, text),
            (f, time),
            (g, calc),
            (h, python),
            (i, fetch),
            (j, memory),
        ]
    }
}

/// Limits, or ceilings, as a file says them.
pub(crate) type WrittenLimits<'a> = LimitSet<
    Option<At<'a, String>>,
    Option<At<'a, String>>,
    Option<At<'a, NonZeroU64>>,
    Option<At<'a, NonZeroU64>>,
>;

impl LimitsConfig {
    /// What a file says of each limit.
    pub(crate) fn at<'a>(&'a self, file: &'a SourceFile) -> WrittenLimits<'a> {
        let Self { memory, time, output, written, requests, tool_calls, fuel, compile } = self;
        written_at(
            LimitSet { memory, time, output, written, requests, tool_calls, fuel, compile },
            file,
        )
    }
}

impl CeilingConfig {
    /// What a file says of the ceiling of each limit.
    pub(crate) fn limits<'a>(&'a self, file: &'a SourceFile) -> WrittenLimits<'a> {
        let Self { memory, time, output, written, requests, tool_calls, fuel, compile, grants: _ } =
            self;
        written_at(
            LimitSet { memory, time, output, written, requests, tool_calls, fuel, compile },
            file,
        )
    }
}

/// What a file says of a limit that is written as a text, and as a number.
type Text<'a> = &'a Option<Written<String>>;
type Number<'a> = &'a Option<Written<NonZeroU64>>;

/// Limits with the file that they stand in.
fn written_at<'a>(
    limits: LimitSet<Text<'a>, Text<'a>, Number<'a>, Number<'a>>,
    mut file: &'a SourceFile,
) -> WrittenLimits<'a> {
    limits.map(
        &mut file,
        |file, _, text| Some(text.as_ref()?.at(file)),
        |file, _, text| Some(text.as_ref()?.at(file)),
        |file, _, number| Some(number.as_ref()?.at(file)),
        |file, _, number| Some(number.as_ref()?.at(file)),
    )
}
