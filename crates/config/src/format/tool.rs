//! A tool as a file has it: its table, its manifest, or the header of a script.

use schemars::JsonSchema;
use serde::Deserialize;

use super::approve::ApproveConfig;
use super::grants::GrantsConfig;
use super::limits::LimitsConfig;
use crate::config::ParameterType;
use crate::format::spanned::{AnyValue, Span, Table, Written};

/// A tool: one that is built in, or one of your own. The manifest `NAME.toml`
/// beside `.kitbag/tools/NAME.wasm` has the same keys, without `source`,
/// `builtin`, `wasm`, `script`, `dev` and `mask`.
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
    /// `false` shows what the tool gives as it is: keys, tokens and private keys in it are not
    /// masked. A model then reads them, and may pass them on. Only your own file has this key.
    #[schemars(extend("default" = true))]
    pub(crate) mask: Option<Written<bool>>,
    /// Before which calls a person is asked: `never`, `always`, `on-write` for a tool that can
    /// change something, or with which arguments. The files of a workspace, and what the tool
    /// says of itself, add to what your own file says and take nothing away. Default: `default`
    /// of `[approve]`, else `never`.
    pub(crate) approve: Option<Written<ApproveConfig>>,
    /// Answers to the tool's questions, by the question's id. A question
    /// that is answered here is not asked.
    pub(crate) answers: Option<Table<AnyValue>>,
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
            mask: _,
            approve: _,
            answers: _,
        } = self;
        let texts = [builtin, replaces, wasm, script, title, description];
        source.is_some() || parameters.is_some() || texts.iter().any(|text| text.is_some())
    }

    /// The keys that say where the component of a tool is, as far as they are written.
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

impl ScriptConfig {
    /// Takes out of a header what any tool may say of itself.
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
