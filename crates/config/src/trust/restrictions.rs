//! The settings of an untrusted workspace's file that take effect: settings that can only restrict,
//! and topics in the workspace.
//!
//! Every key is listed here, so that a new key needs a decision.

use kitbag_contract::ToolName;

use crate::format::span::{BoolOr, Written};
use crate::format::{
    ConfigFile, SecretFilesConfig, ServeConfig, ServerConfig, SourceConfig, ToolConfig,
    ToolsetsConfig, TopicConfig, grants_writing,
};
use crate::report::Span;

/// A tool that the file names but that does not run.
pub(crate) struct NamedTool {
    pub(crate) name: ToolName,
    pub(crate) span: Span,
    pub(crate) source: NamedSource,
}

/// A setting of the file that would turn on built-in tools if the workspace were trusted.
pub(crate) struct WithheldSwitch {
    pub(crate) target: SwitchTarget,
    pub(crate) span: Span,
}

/// The tools that a switch turns on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SwitchTarget {
    /// `[toolsets] write`: the tools that change files.
    Write,
    /// The tools of a toolset.
    Toolset(&'static str),
    /// The tool of this name, by a grant of write access.
    Grant(String),
}

pub(crate) enum NamedSource {
    /// The component at this path, as it is written.
    Component(String),
    /// The built-in of this name.
    Builtin(String),
}

/// Returns whether all settings of a file take effect without trust: they restrict, or are topics;
/// topics outside of the workspace are omitted later. The closures are those of [`narrowed`].
pub(crate) fn counts_wholly(
    config: &ConfigFile,
    is_known: impl Fn(&str) -> bool,
    has_topic: impl Fn(&str) -> bool,
) -> bool {
    let is_off = |switch: &Option<Written<bool>>| switch.as_ref().is_none_or(|it| !it.value);
    let toolsets = config.toolsets.as_ref().is_none_or(|toolsets| {
        let switches = toolsets.switches();
        let narrows = is_off(&toolsets.write) && toolsets.zone().is_none();
        narrows && switches.iter().all(|(_, switch)| is_off(switch))
    });
    let tools = config.tools.iter().flat_map(|tools| tools.iter());
    let tools = tools
        .map(|entry| (&entry.key.value, &entry.value.value))
        .all(|(name, tool)| is_known(name) && !has_withheld(tool));
    let topics = config.knowledge.iter().flat_map(|topics| topics.iter());
    let topics = topics.map(|entry| (&entry.key.value, &entry.value.value));
    let topics = topics.into_iter().all(|(id, topic)| {
        // No subject is learned before trust.
        topic.include.is_none() && topic.learned.is_none() && !has_topic(id)
    });
    let mut servers = config.servers.iter().flat_map(|servers| servers.iter());
    let servers = servers.all(|entry| {
        let server = &entry.value.value;
        server.definition_keys().next().is_none() && is_off(&server.enable)
    });
    toolsets && servers && tools && topics
}

/// Keeps the settings of a file that take effect, and returns the tools that the file names and the
/// switches that do not take effect.
///
/// `is_known` returns whether a tool exists without the workspace, and `has_topic` whether the user
/// config has a topic.
pub(crate) fn narrowed(
    config: ConfigFile,
    is_known: impl Fn(&str) -> bool,
    has_topic: impl Fn(&str) -> bool,
) -> (ConfigFile, Vec<NamedTool>, Vec<WithheldSwitch>) {
    let ConfigFile {
        limits,
        ceiling: _,
        deny: _,
        network: _,
        audit: _,
        approve: _,
        output: _,
        trust: _,
        registry: _,
        registries: _,
        secrets: _,
        secret_store: _,
        allow_leak: _,
        secret_files,
        serve,
        toolsets,
        servers,
        tools,
        knowledge,
    } = config;
    let mut named = Vec::new();
    let mut withheld = toolsets.as_ref().map(withheld_switches).unwrap_or_default();
    let tools = tools.map(|tools| {
        tools.filter_map(|key, span, tool| match is_known(key) {
            true => {
                withheld.extend(withheld_grant(key, &tool));
                Some(narrowed_tool(tool))
            }
            false => {
                named.extend(named_tool(key, span, &tool));
                None
            }
        })
    });
    // A server of the workspace keeps only its name.
    let servers =
        servers.map(|servers| servers.filter_map(|_, _, server| Some(narrowed_server(server))));
    let knowledge = knowledge.map(|topics| {
        topics.filter_map(|id, _, topic| match has_topic(id) {
            true => off(topic.enable)
                .map(|enable| TopicConfig { enable: Some(enable), ..TopicConfig::default() }),
            false => Some(TopicConfig { include: None, ..topic }),
        })
    });
    let narrowed = ConfigFile {
        limits,
        ceiling: None,
        deny: None,
        network: None,
        audit: None,
        approve: None,
        output: None,
        trust: None,
        registry: None,
        registries: None,
        secrets: None,
        secret_store: None,
        allow_leak: None,
        secret_files: secret_files.map(|SecretFilesConfig { names, except: _ }| {
            SecretFilesConfig { names, except: None }
        }),
        // For each key the strictest value of all files takes effect, and for `session_idle` and
        // `tokens` the user's value. The keys of discovery give no access.
        serve: serve.filter(
            |ServeConfig {
                 memory: _,
                 tools: _,
                 session_idle: _,
                 unknown_arguments: _,
                 tokens: _,
                 discovery: _,
                 tool_tokens: _,
                 pinned: _,
                 result_size: _,
             }| { true },
        ),
        toolsets: toolsets.map(narrowed_toolsets),
        servers,
        tools,
        knowledge,
    };
    (narrowed, named, withheld)
}

fn withheld_switches(toolsets: &ToolsetsConfig) -> Vec<WithheldSwitch> {
    let write = (SwitchTarget::Write, toolsets.write.clone());
    let others = toolsets.switches().map(|(name, switch)| (SwitchTarget::Toolset(name), switch));
    let switches = [write].into_iter().chain(others);
    let on = switches.filter_map(|(target, switch)| {
        let Written { value, span } = switch?;
        value.then_some(WithheldSwitch { target, span })
    });
    on.collect()
}

fn withheld_grant(name: &str, tool: &ToolConfig) -> Option<WithheldSwitch> {
    let grants = tool.grants.as_ref()?.value.filesystem.as_ref()?;
    let target = SwitchTarget::Grant(name.to_owned());
    grants_writing(&grants.value).then_some(WithheldSwitch { target, span: grants.span })
}

/// Switches may only switch off.
fn narrowed_toolsets(toolsets: ToolsetsConfig) -> ToolsetsConfig {
    let ToolsetsConfig {
        write,
        learn,
        files,
        search,
        data,
        text,
        time,
        calc,
        python,
        fetch,
        memory,
    } = toolsets;
    ToolsetsConfig {
        write: off(write),
        learn: off(learn),
        files: off(files),
        search: off(search),
        data: off(data),
        text: off(text),
        time: time.filter(|time| match &time.value {
            BoolOr::Short(is_on) => !is_on,
            BoolOr::Other(config) => config.enable.as_ref().is_some_and(|is_on| !is_on.value),
        }),
        calc: off(calc),
        python: off(python),
        fetch: off(fetch),
        memory: off(memory),
    }
}

/// Returns whether a table of a tool has a setting that needs trust: one that [`narrowed_tool`]
/// drops, or grants.
///
/// Every key is listed here, so that a new key needs a decision.
fn has_withheld(tool: &ToolConfig) -> bool {
    let ToolConfig {
        source: _,
        builtin: _,
        replaces: _,
        wasm: _,
        function: _,
        command: _,
        stdin: _,
        script: _,
        title: _,
        description: _,
        parameters: _,
        enable,
        // They are narrowed when they are resolved.
        grants,
        answers,
        dev,
        mask,
        // They take effect.
        limits: _,
        rate: _,
        // It adds calls that need approval.
        approve: _,
    } = tool;
    let is_on = enable.as_ref().is_some_and(|enable| enable.value);
    let is_own = dev.is_some() || mask.is_some();
    tool.makes_tool() || is_on || grants.is_some() || answers.is_some() || is_own
}

/// Keeps the settings for a tool that exists without the workspace. Its grants are narrowed when
/// they are resolved.
fn narrowed_tool(tool: ToolConfig) -> ToolConfig {
    let ToolConfig { enable, grants, limits, rate, approve, .. } = tool;
    let grants = grants.map(|Written { value, span }| Written { value: value.narrowed(), span });
    ToolConfig { enable: off(enable), grants, limits, rate, approve, ..ToolConfig::default() }
}

/// Keeps the settings that narrow a server of the user config.
fn narrowed_server(server: ServerConfig) -> ServerConfig {
    let ServerConfig { tools, enable, approve, .. } = server;
    ServerConfig { tools, enable: off(enable), approve, ..ServerConfig::default() }
}

fn named_tool(key: &str, span: Span, tool: &ToolConfig) -> Option<NamedTool> {
    let source = match (&tool.builtin, &tool.wasm, &tool.source) {
        (Some(builtin), ..) => NamedSource::Builtin(builtin.value.clone()),
        (None, Some(wasm), _) => NamedSource::Component(wasm.value.clone()),
        (None, None, Some(Written { value: SourceConfig::Builtin, .. })) => {
            NamedSource::Builtin(key.to_owned())
        }
        _ => return None,
    };
    Some(NamedTool { name: ToolName::new(key).ok()?, span, source })
}

fn off(switch: Option<Written<bool>>) -> Option<Written<bool>> {
    switch.filter(|switch| !switch.value)
}
