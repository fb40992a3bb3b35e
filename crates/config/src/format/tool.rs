//! The form of a tool in a file: its table, its manifest, or the header of a script.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::approve::ApproveConfig;
use super::grants::GrantsConfig;
use super::limits::LimitsConfig;
use crate::config::ParameterType;
use crate::format::span::{AnyValue, Table, Written};
use crate::report::Span;

/// A built-in tool or one of your own. A manifest `NAME.toml` beside `.kitbag/tools/NAME.wasm` has
/// the same keys, without `source`, `builtin`, `wasm`, `script`, `dev` and `mask`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Tool")]
pub(crate) struct ToolConfig {
    /// `builtin`, `local`, or the tool of an MCP server as `SERVER/TOOL`, which gets this name and
    /// loses its own. Default: `builtin` for the name of a built-in, the tool of a server that has
    /// this name, otherwise `local` if `wasm` is set.
    #[schemars(extend("examples" = ["builtin", "local", "db/query"]))]
    pub(crate) source: Option<Written<SourceConfig>>,
    /// The built-in tool that gets this name and loses its own. Default: the built-in of this name.
    pub(crate) builtin: Option<Written<String>>,
    /// The built-in tool that a local tool or a script replaces, usually the one of its own name.
    /// Required for the name of a built-in.
    #[schemars(extend("examples" = ["search_files"]))]
    pub(crate) replaces: Option<Written<String>>,
    /// The component of a local tool: a path relative to the workspace, or one that starts with
    /// `~/`.
    #[schemars(extend("examples" = [".kitbag/tools/word_count.wasm"]))]
    pub(crate) wasm: Option<Written<String>>,
    /// The component's own name of the tool, for a component with several tools. Default: the name
    /// of this table.
    #[schemars(extend("examples" = ["list-directory"]))]
    pub(crate) function: Option<Written<String>>,
    /// The arguments of a command, without its name. `{name}` is replaced by the argument `name` of
    /// the call, and never split; an element whose argument is missing is dropped. Default: the
    /// caller chooses `args` and `stdin`.
    #[schemars(extend("examples" = [["--count", "{number}", "{path}"]]))]
    pub(crate) command: Option<Written<Vec<Written<String>>>>,
    /// The standard input of a command, with `{name}` as in `command`. Default: empty.
    #[schemars(extend("examples" = ["{text}"]))]
    pub(crate) stdin: Option<Written<String>>,
    /// The script in `.kitbag/scripts` that gets this name and loses its own. Default: the script
    /// of this name.
    #[schemars(extend("examples" = ["word_stats"]))]
    pub(crate) script: Option<Written<String>>,
    /// The display name, for people.
    pub(crate) title: Option<Written<String>>,
    /// The purpose of the tool and when to use it, for the model. Default: the tool's own
    /// description.
    pub(crate) description: Option<Written<String>>,
    /// `false` turns the tool off.
    #[schemars(extend("default" = true))]
    pub(crate) enable: Option<Written<bool>>,
    /// The arguments of a local tool or a script, by name. Default: the tool's own declaration.
    pub(crate) parameters: Option<Written<Table<ParameterConfig>>>,
    /// The access of the tool.
    pub(crate) grants: Option<Written<GrantsConfig>>,
    /// The limits of one call. Default: the limits of all tools.
    pub(crate) limits: Option<LimitsConfig>,
    /// The number of calls for each caller and period: `s`, `min`, `h` or `d`. That many calls may
    /// come at once; further calls are allowed at an even pace. If several files set a rate, the
    /// lowest for each period takes effect. Default: unlimited.
    #[schemars(extend("examples" = ["60/min", "10/min, 100/h"]))]
    pub(crate) rate: Option<Written<String>>,
    /// `true` for a local tool that you build yourself: a new build runs without `kitbag update`,
    /// if it requests no more than `kitbag.lock` records. User config only.
    #[schemars(extend("default" = false))]
    pub(crate) dev: Option<Written<bool>>,
    /// `false` shows the unmasked output of the tool, including keys and tokens, which a model then
    /// reads and may pass on. User config only.
    #[schemars(extend("default" = true))]
    pub(crate) mask: Option<Written<bool>>,
    /// The calls that need approval: `never`, `always`, `on-write` for a tool that can change
    /// something, or calls with certain arguments. Rules of a workspace and of the tool itself can
    /// only add to those of your user config. Default: `default` of `[approve]`, otherwise `never`.
    pub(crate) approve: Option<Written<ApproveConfig>>,
    /// Answers to the tool's questions, by the id of the question. A question with an answer here
    /// is not asked.
    pub(crate) answers: Option<Table<AnyValue>>,
}

/// The header of a script.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Header of a script")]
pub(crate) struct ScriptConfig {
    /// The display name, for people.
    pub(crate) title: Option<Written<String>>,
    /// The purpose of the tool and when to use it, for the model. Default: the docstring.
    pub(crate) description: Option<Written<String>>,
    /// The arguments, by name; each is a variable of the script. Default: none.
    pub(crate) parameters: Option<Written<Table<ParameterConfig>>>,
    /// The type of the answer, if it is JSON: the script prints no text and ends with a value.
    pub(crate) output: Option<Written<ParameterConfig>>,
    /// The requested grants. They grant nothing.
    pub(crate) grants: Option<Written<Table<AnyValue>>>,
    /// The calls that need approval: `always`, `on-write` for a tool that can change something, or
    /// calls with certain arguments. Default: the configured rules.
    pub(crate) approve: Option<Written<ApproveConfig>>,
}

/// The source of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceConfig {
    /// A tool that is part of kitbag.
    Builtin,
    /// A component of your own, at the path in `wasm`.
    Local,
    /// The tool of a server, as `SERVER/TOOL`, or an unknown word.
    Server(String),
}

/// An argument of a tool, or a part of one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Parameter", title = "Parameter")]
pub(crate) struct ParameterConfig {
    /// The type of the value. Default: any JSON value.
    #[serde(rename = "type")]
    pub(crate) kind: Option<Written<ParameterType>>,
    /// The meaning of the argument, for the model.
    pub(crate) description: Option<Written<String>>,
    /// `true` refuses a call without the argument.
    #[schemars(extend("default" = false))]
    pub(crate) required: Option<Written<bool>>,
    /// The value if a call does not have the argument.
    pub(crate) default: Option<Written<AnyValue>>,
    /// The allowed values. Default: every value of the type.
    #[serde(rename = "enum")]
    pub(crate) choices: Option<Written<Vec<Written<AnyValue>>>>,
    /// The type of each element of an array. Default: any JSON value.
    pub(crate) items: Option<Written<Box<ParameterConfig>>>,
    /// The keys of an object; other keys are refused. Default: any keys.
    pub(crate) properties: Option<Written<Table<ParameterConfig>>>,
}

impl ToolConfig {
    /// Returns whether the table defines a tool: it has a key for its source or its description.
    /// Other tables only configure a tool that exists.
    pub(crate) fn makes_tool(&self) -> bool {
        let Self {
            source,
            builtin,
            replaces,
            wasm,
            function,
            command,
            stdin,
            script,
            title,
            description,
            enable: _,
            parameters,
            grants: _,
            limits: _,
            rate: _,
            dev: _,
            mask: _,
            approve: _,
            answers: _,
        } = self;
        let texts = [builtin, replaces, wasm, function, stdin, script, title, description];
        source.is_some()
            || parameters.is_some()
            || command.is_some()
            || texts.iter().any(|text| text.is_some())
    }

    /// Returns the keys that only a component has, with their places.
    pub(crate) fn call_keys(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let Self { function, command, stdin, .. } = self;
        let spans = [
            ("function", function.as_ref().map(|written| written.span)),
            ("command", command.as_ref().map(|written| written.span)),
            ("stdin", stdin.as_ref().map(|written| written.span)),
        ];
        spans.into_iter().filter_map(|(key, span)| Some((key, span?)))
    }

    /// Returns the keys for the source of a tool that the table has, with their places.
    pub(crate) fn source_keys(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let Self { source, builtin, wasm, .. } = self;
        let spans = [
            ("source", source.as_ref().map(|written| written.span)),
            ("builtin", builtin.as_ref().map(|written| written.span)),
            ("wasm", wasm.as_ref().map(|written| written.span)),
        ];
        spans.into_iter().filter_map(|(key, span)| Some((key, span?)))
    }
}

impl<'de> Deserialize<'de> for SourceConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.as_str() {
            "builtin" => Self::Builtin,
            "local" => Self::Local,
            _ => Self::Server(text),
        })
    }
}

impl JsonSchema for SourceConfig {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Source".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl ScriptConfig {
    /// Moves the keys that a tool may declare for itself out of a header.
    pub(crate) fn take_said(&mut self) -> ToolConfig {
        let Self { title, description, parameters, output: _, grants: _, approve } = self;
        ToolConfig {
            title: title.take(),
            description: description.take(),
            parameters: parameters.take(),
            approve: approve.take(),
            ..ToolConfig::default()
        }
    }
}
