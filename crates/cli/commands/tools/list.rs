//! `kitbag list`.

use std::collections::BTreeSet;

use kitbag::base::text::{nearest, printable, shown};
use kitbag::config::{Disabled, Discovery, TOOLSETS, ToolSource, address_words};
use kitbag::host::{Host, Lane};
use kitbag::toolbox::KnownTool;
use kitbag::toolbox::definitions::Format;
use kitbag::toolbox::discovery::estimated_tokens;
use kitbag::{CallContext, Caller, Summary, Toolbox, ToolboxError};
use serde_json::json;

use crate::commands::doctor::servers::required_sign_in;
use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  kitbag list\n  kitbag list data --json\n  kitbag list --cost")]
pub(crate) struct Args {
    /// Show the tokens of each definition instead, the most first: an estimate of a quarter of the
    /// bytes of the definition for MCP clients
    #[arg(long)]
    cost: bool,
    /// Show only this tool, or the tools of this toolset or MCP server [default: all]
    names: Vec<String>,
}

/// The heading of the tools without a toolset.
const OWN: &str = "your own";

#[derive(Default)]
struct Group {
    tools: Vec<Vec<String>>,
    /// Reasons why tools are disabled or cannot work, each with the affected tools.
    disabled: Vec<(String, Vec<String>)>,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let toolbox = kitbag.toolbox();
        let has = |tool: &Summary| self.has(tool) || self.has_server(tool, toolbox);
        let summaries: Vec<_> = toolbox.all_summaries().filter(has).collect();
        if let Some(name) = self.names.iter().find(|name| !is_known(name, toolbox)) {
            let tools = toolbox.all_summaries().map(|tool| tool.name.to_string());
            let servers = toolbox.config().servers.keys().map(ToString::to_string);
            let names: Vec<_> = tools.chain(TOOLSETS.map(str::to_owned)).chain(servers).collect();
            let nearest = nearest(name, names.iter().map(String::as_str));
            let meant = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            let name = shown(name);
            return Err(CliError::Usage(format!("no tool or toolset is named `{name}`{meant}")));
        }
        if self.cost {
            let cost = Cost::new(toolbox, &summaries)?;
            match global.json {
                true => output::json(&cost.as_json())?,
                false => output::data(&cost.as_text())?,
            }
            return Ok(Exit::Done);
        }
        match global.json {
            true => {
                let tools = summaries.into_iter().map(|tool| as_json(tool, toolbox));
                output::json(&tools.collect())?;
            }
            false => {
                let skills = if self.names.is_empty() { skills(toolbox)? } else { String::new() };
                output::data(&format!("{}{skills}", self.as_text(toolbox, summaries)))?;
            }
        }
        Ok(Exit::Done)
    }

    fn has(&self, tool: &Summary) -> bool {
        let is = |name: &String| {
            *name == tool.name.as_str() || tool.toolset.as_ref().is_some_and(|own| own == name)
        };
        self.names.is_empty() || self.names.iter().any(is)
    }

    /// Returns whether a tool belongs to a server that is named.
    fn has_server(&self, tool: &Summary, toolbox: &Toolbox) -> bool {
        let tool = toolbox.config().tools.get(&tool.name).map(|tool| &tool.source.value);
        let Some(ToolSource::Server(of)) = tool else { return false };
        self.names.iter().any(|name| *name == of.server.as_str())
    }

    /// Prints the toolsets in order, then the tools without a toolset.
    fn as_text(&self, toolbox: &Toolbox, mut summaries: Vec<Summary>) -> String {
        let mut text = String::new();
        for toolset in TOOLSETS {
            let (own, rest) =
                summaries.into_iter().partition(|tool| tool.toolset.as_deref() == Some(toolset));
            summaries = rest;
            let group = Group::new(own);
            if group.is_empty()
                && !self.names.is_empty()
                && self.names.iter().all(|it| it != toolset)
            {
                continue;
            }
            text.push_str(&match toolbox.config().toolsets.disabled(toolset) {
                None | Some(Disabled::OffByDefault { .. })
                    if group.is_empty() && !toolbox.toolsets().contains(&toolset) =>
                {
                    format!("{toolset}: not part of this binary\n")
                }
                Some(reason) if group.tools.is_empty() => format!("{toolset}: {reason}\n"),
                _ => group.shown(toolset),
            });
        }
        let omitted = omitted(toolbox, &summaries);
        let unsigned = unsigned(toolbox, &summaries);
        text.push_str(&Group::new(summaries).shown(OWN));
        text.push_str(&omitted);
        text.push_str(&unsigned);
        text.push_str(&self.servers(toolbox));
        // Reasons common to all toolsets are shown once.
        let tools = toolbox.config().tools.values();
        let disabled = tools.filter_map(|tool| tool.disabled.as_ref());
        if let Some(reason) = disabled.filter_map(of_all).next() {
            let reason = reason.to_string();
            text.push_str(&format!("{OFF}: {}\n", reason.trim_start_matches("disabled: ")));
        }
        text
    }
}

/// Names the tools that were downloaded without a signature.
fn unsigned(toolbox: &Toolbox, summaries: &[Summary]) -> String {
    let is_unsigned = |tool: &&Summary| {
        let tool = toolbox.config().tools.get(&tool.name).map(|tool| &tool.source.value);
        let Some(ToolSource::Local(local)) = tool else { return false };
        let download = local.recorded.as_ref().and_then(|it| it.tool.download.as_ref());
        download.is_some_and(|download| download.signer.is_none())
    };
    let names: Vec<_> =
        summaries.iter().filter(is_unsigned).map(|tool| tool.name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("  downloaded and unsigned: {}\n", names.join(", ")),
    }
}

/// The tokens of the definitions of tools.
struct Cost {
    /// The tools, the most expensive first.
    tools: Vec<ToolCost>,
    discovery: Discovery,
}

struct ToolCost {
    name: String,
    tokens: u64,
    /// The tool's own description is not known before it is loaded.
    is_partial: bool,
}

impl Cost {
    fn new(toolbox: &Toolbox, summaries: &[Summary]) -> Result<Self, CliError> {
        let mut tools = Vec::new();
        for known in toolbox.known_tools() {
            let KnownTool { tool, may_say_more } = known?;
            if tool.check_schema_forms().is_err()
                || summaries.iter().all(|summary| summary.name != tool.name)
            {
                continue;
            }
            let definition = Format::Mcp.define(&tool).value.to_string();
            tools.push(ToolCost {
                name: tool.name.to_string(),
                tokens: estimated_tokens(&definition),
                is_partial: may_say_more,
            });
        }
        tools.sort_by(|one, other| {
            other.tokens.cmp(&one.tokens).then_with(|| one.name.cmp(&other.name))
        });
        Ok(Self { tools, discovery: toolbox.config().discovery.clone() })
    }

    fn total(&self) -> u64 {
        self.tools.iter().map(|tool| tool.tokens).sum()
    }

    fn as_json(&self) -> serde_json::Value {
        let tools = self.tools.iter().map(
            |tool| json!({ "name": tool.name, "tokens": tool.tokens, "partial": tool.is_partial }),
        );
        json!({
            "tools": tools.collect::<Vec<_>>(),
            "tokens": self.total(),
            "tool_tokens": self.discovery.tool_tokens.value,
        })
    }

    fn as_text(&self) -> String {
        let row = |name: &str, tokens: u64, note: &str| {
            vec![format!("{tokens:>7}"), name.to_owned(), note.to_owned()]
        };
        let note =
            |tool: &ToolCost| if tool.is_partial { "without its own description" } else { "" };
        let mut rows: Vec<_> =
            self.tools.iter().map(|tool| row(&tool.name, tool.tokens, note(tool))).collect();
        let (count, budget) = (self.tools.len(), self.discovery.tool_tokens.value);
        let tools = if count == 1 { "tool" } else { "tools" };
        rows.push(row(
            &format!("{count} {tools}; `[serve] tool_tokens` is {budget}"),
            self.total(),
            "",
        ));
        output::aligned(&rows)
    }
}

/// Names the exported functions that are not tools, once for each component.
fn omitted(toolbox: &Toolbox, summaries: &[Summary]) -> String {
    const MOST: usize = 5;
    let mut text = String::new();
    let mut components = BTreeSet::new();
    let functions = summaries.iter().filter(|tool| tool.lane == Some(Lane::Functions));
    for tool in functions.filter(|tool| components.insert(&tool.source)) {
        let omissions = toolbox.omissions(&tool.name);
        let named: Vec<_> = omissions.iter().take(MOST).map(ToString::to_string).collect();
        let more = if omissions.len() > MOST { ", …" } else { "" };
        if !named.is_empty() {
            let (file, named) = (shown(&tool.source), named.join(", "));
            text.push_str(&format!("  not tools in {file}: {named}{more}\n"));
        }
    }
    text
}

impl Args {
    /// Lists the servers: the process or the URL of each, and why it is off.
    fn servers(&self, toolbox: &Toolbox) -> String {
        let is_listed =
            |name: &str| self.names.is_empty() || self.names.iter().any(|it| it == name);
        let servers = toolbox.config().servers.values();
        let rows: Vec<_> = servers
            .filter(|server| is_listed(server.name.as_str()))
            .map(|server| {
                let address = server.address.as_ref();
                let words = address.map(|address| address_words(&address.value));
                let off = server.disabled.as_ref().map(ToString::to_string);
                let recorded = server.recorded.as_ref().map(|it| it.server.tools.len());
                let tools = recorded.map(|count| match count {
                    1 => "1 tool".to_owned(),
                    count => format!("{count} tools"),
                });
                let state = off.or(tools).unwrap_or_default();
                let sign_in = required_sign_in(toolbox.config(), server).unwrap_or_default();
                let text = [words.unwrap_or_default(), state, sign_in];
                let text: Vec<_> = text.into_iter().filter(|text| !text.is_empty()).collect();
                vec![format!("  {}", server.name), shown(&text.join("; ")).to_string()]
            })
            .collect();
        match rows.is_empty() {
            true => String::new(),
            false => format!("servers\n{}", output::aligned(&rows)),
        }
    }
}

/// Lists the skills: the name, the topic and the description of each.
fn skills(toolbox: &Toolbox) -> Result<String, CliError> {
    let context = CallContext::new(Caller::this_user());
    let read = Host::block_on(|| toolbox.listed_skills(context));
    let skills = read.map_err(ToolboxError::from).flatten()?.skills;
    let rows: Vec<_> = skills
        .iter()
        .map(|skill| {
            let description = shown(first_sentence(skill.description.trim())).to_string();
            vec![format!("  {}", shown(skill.loadable_name())), skill.topic.clone(), description]
        })
        .collect();
    Ok(match rows.is_empty() {
        true => String::new(),
        false => format!("skills\n{}", output::aligned(&rows)),
    })
}

/// Returns whether a tool, a toolset or a server has this name.
fn is_known(name: &str, toolbox: &Toolbox) -> bool {
    TOOLSETS.contains(&name)
        || toolbox.config().servers.contains_key(name)
        || toolbox.all_summaries().any(|tool| tool.name.as_str() == name)
}

fn as_json(tool: Summary, toolbox: &Toolbox) -> serde_json::Value {
    let omitted = match tool.lane {
        Some(Lane::Functions) => toolbox.omissions(&tool.name),
        _ => Vec::new(),
    };
    let mut object = json!({
        "name": tool.name,
        "source": tool.source,
        "lane": tool.lane,
        "toolset": tool.toolset,
        "reach": tool.reach,
        "unavailable": tool.unavailable,
        "disabled": tool.disabled.map(|reason| reason.to_string()),
        "description": tool.description,
    });
    if !omitted.is_empty() {
        object["omitted"] = json!(omitted);
    }
    object
}

/// Note on tools that need a workspace.
const OFF: &str = "off without a workspace";

/// Returns the reason why tools are disabled if it is the same for several toolsets, in words for
/// all of them.
fn of_all(disabled: &Disabled) -> Option<Disabled> {
    let Disabled::NoWorkspace { root, is_home, file, .. } = disabled else { return None };
    let (root, is_home, file) = (root.clone(), *is_home, file.clone());
    Some(Disabled::NoWorkspace { toolset: "TOOLSET".into(), root, is_home, file })
}

impl Group {
    fn new(tools: Vec<Summary>) -> Self {
        let mut group = Self::default();
        for tool in tools {
            match &tool.disabled {
                None => {
                    group.tools.push(row(&tool));
                    if let Some(reason) = &tool.unavailable {
                        let reason = printable(reason).to_string().replace('\n', " ");
                        let reason = format!("unavailable: {reason}");
                        group.disabled.push((reason, vec![tool.name.to_string()]));
                    }
                }
                Some(reason) => {
                    let text = || reason.to_string();
                    let reason = of_all(reason).map_or_else(text, |_| OFF.to_owned());
                    let name = tool.name.to_string();
                    match group.disabled.iter_mut().find(|(other, _)| *other == reason) {
                        Some((_, names)) => names.push(name),
                        None => group.disabled.push((reason, vec![name])),
                    }
                }
            }
        }
        group
    }

    fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.disabled.is_empty()
    }

    fn shown(&self, heading: &str) -> String {
        if self.is_empty() {
            return String::new();
        }
        let disabled = self.disabled.iter().map(|(reason, names)| (reason, names.join(", ")));
        let disabled: String =
            disabled.map(|(reason, names)| format!("  {names}: {reason}\n")).collect();
        format!("{heading}\n{}{disabled}", output::aligned(&self.tools))
    }
}

/// Returns the columns of a tool: its name, its access, its origin unless built in, and its
/// description.
fn row(tool: &Summary) -> Vec<String> {
    let source = tool.toolset.is_none().then(|| {
        let lane = tool.lane.filter(|lane| lane.is_foreign());
        let words = lane.map(|lane| format!(", {}", lane.words())).unwrap_or_default();
        format!("{}{words}", shown(&tool.source))
    });
    let description = tool.description.as_deref().unwrap_or_default();
    let mut row = vec![format!("  {}", tool.name)];
    row.push(tool.reach.clone().unwrap_or_default());
    row.extend(source);
    row.push(shown(first_sentence(description)).to_string());
    row
}

/// Returns the first sentence of a description, which fits beside a name.
fn first_sentence(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.split_once(". ").map_or(line, |(sentence, _)| sentence).trim_end_matches('.')
}
