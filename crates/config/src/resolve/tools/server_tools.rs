//! Tools of MCP servers.

use std::collections::{BTreeMap, HashSet};

use kitbag_base::shell;
use kitbag_base::text::{nearest, shown};
use kitbag_contract::ToolName;

use super::candidate::{Candidate, answers, check_own_keys, rate};
use crate::config::{ConfiguredGrants, ConfiguredTool, ServerTool, ToolRate, ToolSource};
use crate::format::key::KeyPath;
use crate::format::span::{At, Part, all, copied, last};
use crate::format::{SourceConfig, ToolConfig};
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;
use crate::report::text::{did_you_mean, known_words, unknown_value};
use crate::report::{Problem, Report, Span};
use crate::resolve::context::Context;
use crate::resolve::limits;
use crate::resolve::user::approve;

/// The tool of a server that tables with a name are for.
pub(super) enum Named<'a> {
    /// The tables are not for a tool of a server.
    None,
    /// The server or its tool does not exist, which was reported.
    Unknown,
    /// The tables are for a tool of another workspace's server.
    Absent,
    /// The tables are for this tool.
    Tool(&'a ServerTool),
}

/// Returns the server's tool that these tables are for, by `source` or by its default name.
pub(super) fn named<'a>(
    context: &'a Context<'_>,
    name: &ToolName,
    tables: &[Part<'_, ToolConfig>],
    report: &mut Report,
) -> Named<'a> {
    let source = last(tables, |tool| tool.source.as_ref());
    let Some(at) = source else {
        let is_other = tables.iter().any(|part| {
            let ToolConfig { builtin, replaces, wasm, script, .. } = part.at.value;
            [builtin, replaces, wasm, script].iter().any(|key| key.is_some())
        });
        return match context.offers.named(name.as_str()) {
            Some(tool) if !is_other => Named::Tool(tool),
            _ => Named::None,
        };
    };
    let SourceConfig::Server(text) = at.value else { return Named::None };
    let Some((server, tool)) = text.split_once('/') else {
        let (tools, words) = (KeyPath::ROOT.key("tools"), ["builtin", "local"]);
        let tool = tools.key(name.as_str());
        let expected = "`builtin`, `local` or `SERVER/TOOL`";
        let problem = Problem::from(unknown_value(&tool.key("source"), expected, text));
        report.at(at, problem.hint(did_you_mean(nearest(text, words))));
        return Named::Unknown;
    };
    if context.named(name.as_str()).is_some() {
        let problem = format!(
            "a tool of a server may not have the name of the built-in `{name}`; choose another name"
        );
        report.at(at, problem);
        return Named::Unknown;
    }
    if let Some(tool) = context.offers.of_source(server, tool) {
        return Named::Tool(tool);
    }
    let is_of_user = tables.iter().all(|part| part.at.file.layer() == Layer::User);
    match context.servers.get(server) {
        None if is_of_user => return Named::Absent,
        None => {
            let names = || context.servers.keys().map(|name| name.as_str());
            let hint =
                did_you_mean(nearest(server, names())).or_else(|| known_words("servers", names()));
            let problem = format!("no server is named `{}`", shown(server));
            report.at(at, Problem::from(problem).hint(hint));
        }
        // Its own mistake is reported, or it is not trusted.
        Some(found) if found.address.is_none() => {}
        Some(found) => {
            let tools = found.recorded.iter().flat_map(|it| it.server.tools.keys());
            let hint = did_you_mean(nearest(tool, tools.map(String::as_str)));
            let problem = format!(
                "the server `{server}` has no recorded tool `{}` that its `tools` let through; \
                 `{}` records its tools",
                shown(tool),
                shell::command(["kitbag", "update", server])
            );
            report.at(at, Problem::from(problem).hint(hint));
        }
    }
    Named::Unknown
}

/// Returns the tools that a table gives another name. They lose their own, unless it has a table.
pub(super) fn renamed(
    tables: &BTreeMap<ToolName, Vec<Part<'_, ToolConfig>>>,
) -> HashSet<(String, String)> {
    let sources = tables.values().filter_map(|parts| {
        let at = last(parts, |tool| tool.source.as_ref())?;
        let SourceConfig::Server(text) = at.value else { return None };
        let (server, tool) = text.split_once('/')?;
        Some((server.to_owned(), tool.to_owned()))
    });
    sources.collect()
}

/// Returns the tool of a candidate, with the settings of its tables.
pub(super) fn resolve(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    tool: &ServerTool,
    limits: &EffectiveLimits,
    report: &mut Report,
) -> ConfiguredTool {
    let Candidate { name, parts, .. } = candidate;
    let tools = KeyPath::ROOT.key("tools");
    let path = tools.key(name.as_str());
    check_own_keys(context, candidate, report);
    check_keys(candidate, tool, report);
    let server = context.servers.get(&tool.server);
    let enable = copied(parts, |tool| tool.enable.as_ref());
    let own = all(parts, |tool| tool.enable.as_ref()).find(|at| !at.value);
    let disabled = match own {
        Some(at) => Some(Disabled::Tool { origin: at.origin() }),
        None => server.and_then(|server| of_server(server.disabled.as_ref(), tool)),
    };
    let layers = parts.iter().map(|part| part.at);
    let layers = layers.filter_map(|at| Some((at.file, at.value.limits.as_ref()?)));
    let limits = limits::merged(context, &path.key("limits"), layers, limits, report);
    let counted = |rates| ToolRate { rates, counted_as: (*name).clone() };
    let source = last(parts, |tool| tool.source.as_ref()).map(|at| at.origin());
    let defined = server.and_then(|server| Some(server.address.as_ref()?.origin.clone()));
    let origin = source.or(defined).unwrap_or_default();
    ConfiguredTool {
        name: (*name).clone(),
        source: Sourced { value: ToolSource::Server(tool.clone()), origin },
        enable: enable.unwrap_or(Sourced::default(true)),
        toolset: None,
        disabled,
        title: copied(parts, |tool| tool.title.as_ref()),
        description: copied(parts, |tool| tool.description.as_ref()),
        grants: ConfiguredGrants::default(),
        limits: limits.under(context.overrides),
        rates: rate(parts, report).map(counted).into_iter().collect(),
        approve: approve::of_server_tool(
            context,
            server.map(|server| &server.approve[..]).unwrap_or_default(),
            parts,
            report,
        ),
        answers: answers(parts, report),
        mask: copied(parts, |tool| tool.mask.as_ref()).unwrap_or(Sourced::default(true)),
    }
}

/// Returns the reason why a tool of a server is off that is off.
pub(in crate::resolve) fn of_server(
    disabled: Option<&Disabled>,
    tool: &ServerTool,
) -> Option<Disabled> {
    let reason = Box::new(disabled?.clone());
    Some(Disabled::Server { server: tool.server.clone(), reason })
}

/// Refuses keys without a meaning for a tool of a server.
fn check_keys(candidate: &Candidate<'_>, tool: &ServerTool, report: &mut Report) {
    let name = candidate.name;
    let mut refuse = |at: At<'_, ()>, key: &str, why: &str| {
        report.at(at, format!("tool `{name}` may not have `{key}`: {why}; remove it"));
    };
    let server = &tool.server;
    let access =
        format!("the access of its server is set by `confine` and `env` of `[servers.{server}]`");
    let own = format!("it is a tool of the server `{server}`");
    for part in &candidate.parts {
        let ToolConfig { builtin, replaces, wasm, script, parameters, grants, dev, .. } =
            part.at.value;
        let at = |span: Span| At { file: part.at.file, span, value: &() };
        if let Some(grants) = grants {
            refuse(at(grants.span), "grants", &access);
        }
        let texts =
            [("builtin", builtin), ("replaces", replaces), ("wasm", wasm), ("script", script)];
        let spans = texts.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?.span)));
        let others = [
            ("parameters", parameters.as_ref().map(|it| it.span)),
            ("dev", dev.as_ref().map(|it| it.span)),
        ];
        let others = others.into_iter().filter_map(|(key, span)| Some((key, span?)));
        for (key, span) in spans.chain(others).chain(part.at.value.call_keys()) {
            refuse(at(span), key, &own);
        }
    }
}

/// Adds the tools of servers that no table mentions. A name that another tool has is refused, and
/// the other tool stays.
pub(super) fn add(
    context: &Context<'_>,
    tools: &mut BTreeMap<ToolName, ConfiguredTool>,
    renamed: &HashSet<(String, String)>,
    limits: &EffectiveLimits,
    report: &mut Report,
) {
    for offer in context.offers.iter() {
        let tool = &offer.tool;
        let (server, own) = (&tool.server, &tool.tool);
        let is_same = |other: &ConfiguredTool| matches!(&other.source.value, ToolSource::Server(it) if it.server == *server && it.tool == *own);
        let Some(name) = &offer.name else {
            warn(context, tool, "a tool of the server has no name, and is not offered", report);
            continue;
        };
        let other = tools.get(name);
        if other.is_some_and(is_same) || renamed.contains(&(server.to_string(), own.clone())) {
            continue;
        }
        let is_taken = other.is_some()
            || context.named(name.as_str()).is_some()
            || context.bytes_tools.contains(name);
        if is_taken {
            let message = format!(
                "the tool `{}` of the server is not offered: another tool is named `{name}`; set \
                 `prefix` in `[servers.{server}]`, or give the tool a name with `source = \
                 \"{server}/{}\"` in `[tools.NAME]`",
                shown(own),
                shown(own)
            );
            warn(context, tool, &message, report);
            continue;
        }
        let candidate = Candidate::new(context, name, None, super::Script::None, Vec::new());
        let resolved = resolve(context, &candidate, tool, limits, report);
        tools.insert(name.clone(), resolved);
    }
}

fn warn(context: &Context<'_>, tool: &ServerTool, message: &str, report: &mut Report) {
    let server = context.servers.get(&tool.server);
    let origin = server.and_then(|server| Some(server.address.as_ref()?.origin.clone()));
    report.warn(Problem::from(message).at(origin.unwrap_or(Origin::Default)));
}
