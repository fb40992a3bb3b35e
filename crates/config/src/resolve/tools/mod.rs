//! Tools: built-ins, components in `.kitbag/tools`, and tools that a table names.

mod absent;
pub(crate) mod aliases;
mod builtins;
mod candidate;
mod local;
mod names;
mod scripts;
pub(crate) mod serve;
pub(crate) mod server_tools;
pub(crate) mod switches;
pub(crate) mod toolsets;
pub(crate) mod untrusted_tools;

use std::collections::BTreeMap;

use kitbag_contract::ToolName;

pub(crate) use absent::{AbsentTables, warnings};
use candidate::Candidate;
use names::{is_unused, shadows, two_tools};
use scripts::{Script, script_key};
use server_tools::Named;

use super::context::{Context, tables};
use super::grants;
use super::grants::beyond::{Code, Grantee};
use super::user::approve;
use crate::config::{ConfiguredTool, LocalTool, ToolSource};
use crate::format::ToolConfig;
use crate::format::span::{Part, last, merge};
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::read::file::Layer;
use crate::read::{FoundScript, FoundTool};
use crate::report::{Piece, Report};

struct Tools<'a> {
    context: &'a Context<'a>,
    /// The limits of a tool without limits of its own.
    limits: &'a EffectiveLimits,
    tools: BTreeMap<ToolName, ConfiguredTool>,
    /// The built-ins that unresolved tools replace: they are not restored.
    replaced: Vec<String>,
}

impl Tools<'_> {
    fn add(&mut self, candidate: &Candidate<'_>, report: &mut Report) {
        match candidate.resolve(self.context, self.limits, report) {
            Some(tool) => drop(self.tools.insert(tool.name.clone(), tool)),
            None if self.context.is_untrusted() => {}
            None => {
                let replaces = last(&candidate.parts, |tool| tool.replaces.as_ref());
                self.replaced.extend(replaces.map(|at| at.value.clone()));
            }
        }
    }
}

/// Returns all tools, and the tables of the user config without a tool. `limits` are those of a
/// tool without limits of its own.
pub(crate) fn all<'a>(
    context: &Context<'a>,
    found: &BTreeMap<ToolName, FoundTool>,
    named_script: Option<&(ToolName, FoundScript)>,
    limits: &EffectiveLimits,
    report: &mut Report,
) -> (BTreeMap<ToolName, ConfiguredTool>, AbsentTables<'a>) {
    let mut tables: BTreeMap<ToolName, Vec<Part<'a, ToolConfig>>> = BTreeMap::new();
    for parts in merge(self::tables(context.configs, |config| config.tools.as_ref())) {
        match ToolName::new(parts[0].key.value) {
            Ok(name) => drop(tables.insert(name, parts)),
            Err(error) => {
                report.enter(Piece::Tool(parts[0].key.value.to_owned()));
                report.at(parts[0].key, error);
            }
        }
    }
    let mut tools = Tools { context, limits, tools: BTreeMap::new(), replaced: Vec::new() };
    let taken = scripts::taken(context, tables.iter());
    let renamed = server_tools::renamed(&tables);
    for (name, found) in untrusted_tools::listed_components(context, found) {
        let tables = tables.remove(name).unwrap_or_default();
        report.enter(Piece::Tool(name.to_string()));
        scripts::check_no_script(name, &tables, "it is a component in `.kitbag/tools`", report);
        let is_unused = is_unused(context, name, &found.shown, Some(&found.wasm), &tables, report);
        let manifest = found.manifest.as_ref().map(|(_, config)| config);
        let is_left_out =
            is_unused || shadows(context, name, &found.shown, manifest, &tables, report);
        let found = (!is_left_out).then_some(found);
        tools.add(&Candidate::new(context, name, found, Script::None, tables), report);
    }
    for (name, script) in untrusted_tools::listed_scripts(context, found) {
        let own = tables.remove(name);
        if own.is_none() && taken.contains(&name) {
            continue;
        }
        let own = own.unwrap_or_default();
        report.enter(Piece::Tool(name.to_string()));
        if let Some(found) = found.get(name) {
            let origin = Origin::Found { path: script.shown.clone() };
            let piece = (Layer::Manifest, Piece::Tool(name.to_string()));
            report.piece(origin, two_tools(name, &found.shown), piece);
            continue;
        }
        if let Some(at) = script_key(&own)
            && at.value != name.as_str()
        {
            report.at(at, two_tools(name, &script.shown));
            continue;
        }
        let is_left_out = is_unused(context, name, &script.shown, None, &own, report)
            || script_key(&own).is_none()
                && shadows(context, name, &script.shown, None, &own, report);
        let script = if is_left_out { Script::None } else { Script::Found(script) };
        tools.add(&Candidate::new(context, name, None, script, own), report);
    }
    let mut absent = AbsentTables::new();
    for (name, tables) in tables {
        let is_of_server = context.offers.named(name.as_str()).is_some();
        if !is_of_server && absent::is_absent(context, &name, &tables) {
            absent.insert(name, tables.iter().map(|part| part.key).collect());
            continue;
        }
        report.enter(Piece::Tool(name.to_string()));
        match server_tools::named(context, &name, &tables, report) {
            Named::None => {}
            Named::Unknown => continue,
            Named::Absent => {
                absent.insert(name, tables.iter().map(|part| part.key).collect());
                continue;
            }
            Named::Tool(tool) => {
                let candidate = Candidate::new(context, &name, None, Script::None, tables);
                let tool = server_tools::resolve(context, &candidate, tool, limits, report);
                tools.tools.insert(name.clone(), tool);
                continue;
            }
        }
        let script = scripts::named(context, &tables, report);
        tools.add(&Candidate::new(context, &name, None, script, tables), report);
    }
    for name in context.bytes_tools {
        if !tools.tools.contains_key(name) {
            report.enter(Piece::Tool(name.to_string()));
            tools.add(&Candidate::new(context, name, None, Script::None, Vec::new()), report);
        }
    }
    report.enter(Piece::Everything);
    if let Some(tool) = of_caller(context, limits, report) {
        tools.tools.insert(tool.name.clone(), tool);
    }
    if let Some((name, script)) = named_script {
        let script = Script::Found(script);
        tools.add(&Candidate::new(context, name, None, script, Vec::new()), report);
    }
    let Tools { mut tools, replaced, .. } = tools;
    names::check_replaced_once(&tools, report);
    builtins::add(context, &mut tools, replaced, limits, report);
    server_tools::add(context, &mut tools, &renamed, limits, report);
    aliases::share(context, &mut tools);
    (tools, absent)
}

/// Returns the tool whose component the caller names for this call.
fn of_caller(
    context: &Context<'_>,
    limits: &EffectiveLimits,
    report: &mut Report,
) -> Option<ConfiguredTool> {
    let component = context.sources.component.as_ref()?;
    let wasm = context.sources.named_path(&component.wasm);
    let wasm = Sourced { value: wasm, origin: Origin::Caller };
    let local = ToolSource::Local(LocalTool::new(wasm, None, None));
    let source = Sourced { value: local, origin: Origin::Caller };
    let name = component.name.clone();
    let grantee = Grantee { name: &name, builtin: None, code: Code::Own, is_enabled: true };
    let grants = grants::of_tool(context, grantee, &[], report);
    let approve = approve::rules(context, &[], report);
    let limits = limits.clone().under(context.overrides);
    let tool = ConfiguredTool::of_caller(name.clone(), source, limits);
    Some(ConfiguredTool { grants, approve, ..tool })
}
