//! Built-in tools.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use kitbag_contract::ToolName;

use super::candidate::Candidate;
use super::local::check_no_call;
use super::toolsets;
use crate::config::{ConfiguredGrants, ConfiguredTool, ToolSource};
use crate::format::ToolConfig;
use crate::format::key::KeyPath;
use crate::format::span::{Part, Written, all, last};
use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::read::sources::BuiltinTool;
use crate::report::Report;
use crate::resolve::context::Context;
use crate::resolve::grants::beyond::{Code, Grantee};
use crate::resolve::user::approve;
use crate::resolve::{grants, limits};

pub(super) fn builtin(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    path: &KeyPath<'_>,
    report: &mut Report,
) -> Option<ToolSource> {
    let Candidate { name, tables, .. } = candidate;
    let said = candidate.said_of_kind();
    fixed(&said, "parameters", candidate, |tool| tool.parameters.as_ref(), report);
    fixed(&said, "wasm", candidate, |tool| tool.wasm.as_ref(), report);
    fixed(&said, "dev", candidate, |tool| tool.dev.as_ref(), report);
    check_no_call(candidate, "it is part of kitbag", report);
    for at in all(&said, |tool| tool.replaces.as_ref()) {
        let problem = format!(
            "tool `{name}` may not have `replaces`: only a local tool can replace a built-in; \
             remove it"
        );
        report.at(at, problem);
    }

    let written = last(tables, |tool| tool.builtin.as_ref());
    let builtin = written.map_or(name.as_str(), |at| at.value.as_str());
    let is_known = context.named(builtin).is_some();
    let at = written.map(|at| at.with(builtin));
    let source = last(tables, |tool| tool.source.as_ref()).map(|at| at.with(builtin));
    if let Some(at) = at.or(source)
        && !is_known
        && !context.invalid.covers(&path.key("builtin"))
    {
        report.at(at, context.unknown_builtin(builtin));
    }
    if let Some(at) = at
        && is_known
        && builtin != name.as_str()
        && context.named(name.as_str()).is_some()
    {
        let problem = format!(
            "tool `{name}` is the built-in `{builtin}`, but has the name of another built-in; \
             rename it"
        );
        report.at(at, problem);
    }
    let own_name =
        at.map_or(Sourced::default(builtin.to_owned()), |at| at.sourced(builtin.to_owned()));
    is_known.then_some(ToolSource::Builtin { name: own_name })
}

/// Refuses a key that has no meaning for a built-in.
fn fixed<'b, T: 'b>(
    parts: &[Part<'b, ToolConfig>],
    key: &'static str,
    candidate: &Candidate<'_>,
    field: impl Fn(&'b ToolConfig) -> Option<&'b Written<T>>,
    report: &mut Report,
) {
    for at in all(parts, field) {
        let why = match key {
            "parameters" => "it has its own",
            _ => "its component is part of kitbag",
        };
        let tool = candidate.name;
        let problem = format!("built-in tool `{tool}` may not have `{key}`: {why}; remove the key");
        report.at(at, problem);
    }
}

/// Adds the built-ins that no file mentions. A built-in with another name loses its own, and a
/// replaced built-in has no name. `replaced` are the built-ins that unresolved tools replace.
pub(super) fn add(
    context: &Context<'_>,
    tools: &mut BTreeMap<ToolName, ConfiguredTool>,
    replaced: Vec<String>,
    limits: &EffectiveLimits,
    report: &mut Report,
) {
    let taken = tools.values().filter_map(|tool| match &tool.source.value {
        ToolSource::Builtin { name } => Some(name.value.clone()),
        source => Some(source.replaces()?.value.clone()),
    });
    let taken: HashSet<String> = taken.chain(replaced).collect();
    // Most built-ins request one of two sets of grants.
    let mut granted: Vec<(bool, &BuiltinTool<'_>, ConfiguredGrants)> = Vec::new();
    for builtin in context.builtins.iter().filter(|builtin| !taken.contains(builtin.name)) {
        let name = match ToolName::new(builtin.name) {
            Ok(name) => name,
            Err(error) => {
                report.origin(Origin::Default, error);
                continue;
            }
        };
        let Entry::Vacant(vacant) = tools.entry(name.clone()) else { continue };
        let own_name = Sourced::default(builtin.name.to_owned());
        let source = Sourced::default(ToolSource::Builtin { name: own_name });
        let disabled = toolsets::disabled(context, builtin, None, &[]);
        let is_enabled = disabled.is_none();
        let same = granted.iter().find(|(other_is_enabled, other, _)| {
            is_enabled == *other_is_enabled
                && builtin.workspace == other.workspace
                && builtin.calls == other.calls
                && builtin.keeps == other.keeps
                && builtin.given_by_call == other.given_by_call
        });
        let grants = match same {
            Some((.., grants)) => grants.clone(),
            None => {
                let code = Code::Own;
                let grantee = Grantee { name: &name, builtin: Some(builtin), code, is_enabled };
                let grants = grants::of_tool(context, grantee, &[], report);
                granted.push((is_enabled, builtin, grants.clone()));
                grants
            }
        };
        let toolset = Some(builtin.toolset.to_owned());
        let limits = limits::under(context, limits, Some(builtin)).under(context.overrides);
        let tool = ConfiguredTool::of_caller(name, source, limits);
        let approve = approve::rules(context, &[], report);
        vacant.insert(ConfiguredTool { toolset, disabled, grants, approve, ..tool });
    }
}
