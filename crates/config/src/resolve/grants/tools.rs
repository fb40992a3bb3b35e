//! Other tools that a tool may call: `"caller"`, or a table of aliases.

use std::collections::BTreeMap;

use kitbag_base::text::{nearest, shown};
use kitbag_contract::{ToolName, ToolNameError};
use kitbag_policy::tools::{Alias, ArgumentPath, Condition, ToolGrant, ToolGrants};
use kitbag_policy::{Grants, Kind, Rates};

use super::beyond::{Code, Grantee, layered};
use super::call_form::{CallForm, CallTarget, table};
use super::kind::{ConfigKind, Merge};
use crate::config::{ConfiguredGrants, ConfiguredTool};
use crate::format::span::{At, StringOr, Table};
use crate::format::{
    CeilingGrantsConfig, ConditionConfig, ToolGrantConfig, ToolsCeilingConfig, ToolsConfig,
};
use crate::layers::origin::{Origin, Sourced};
use crate::report::text::did_you_mean;
use crate::report::{DiagnosticKind, Problem, Report};
use crate::resolve::context::valid;
use crate::resolve::parameters::value::json;

enum Said<'a> {
    /// Every tool that the caller may call.
    Caller,
    /// These aliases, each with its place.
    Aliases(Vec<(At<'a, str>, Alias, ToolGrant)>),
}

pub(super) const KIND: ConfigKind = ConfigKind {
    key: ToolGrants::KEY,
    merge: granted,
    ceiling: Some(ceiling),
    call: Some(CallForm { read: typed, add }),
};

fn ceiling(own: At<'_, CeilingGrantsConfig>, ceiling: &mut ConfiguredGrants, report: &mut Report) {
    let Some(at) = own.inner(|grants| grants.tools.as_ref()) else { return };
    ceiling.set(|grants| &mut grants.tools, at.sourced(ceiling_of(at, report)));
}

fn ceiling_of(at: At<'_, ToolsCeilingConfig>, report: &mut Report) -> ToolGrants {
    let names = match at.value {
        StringOr::Short(word) if word == ToolGrants::CALLER => return ToolGrants::Caller,
        StringOr::Short(word) => {
            let problem = format!(
                "`{}` is not a ceiling; write `tools = \"{}\"` for all tools that the caller may \
                 call, or a list such as `tools = [\"search_files\"]`",
                shown(word),
                ToolGrants::CALLER
            );
            report.at(at, problem);
            return ToolGrants::None;
        }
        StringOr::Other(names) => valid(at.with(names), report, ToolName::new),
    };
    let tools = names.into_iter().map(|name| (name.clone(), ToolGrant::new(name)));
    ToolGrants::aliases(tools)
}

/// Returns the other tools that a tool may call. Entries of a workspace beyond the ceiling and the
/// user's own grants are omitted. The default of a built-in may be its declaration.
fn granted(merge: &mut Merge<'_, '_>, report: &mut Report) {
    let layers = merge.layers(|grants| grants.tools.as_ref());
    let mut entries = merge.entries(ToolGrants::KEY);
    let ceiling = &entries.context.workspace_ceiling;
    let Grantee { name, builtin, code, .. } = entries.grantee;
    let Some(layers) = layered(layers, code, |weaker| said(weaker, name, report)) else {
        if builtin.is_some_and(|builtin| builtin.calls) {
            // The default of a workspace's script is limited to the grants that its workspace could
            // give.
            let granted = match code == Code::Workspace && ceiling.has(ToolGrants::KEY) {
                true => Sourced {
                    value: ceiling.value.tools.clone(),
                    origin: ceiling.origin_of(ToolGrants::KEY).clone(),
                },
                false => Sourced { value: ToolGrants::Caller, origin: Origin::Tool },
            };
            entries.grants.set(|grants| &mut grants.tools, granted);
        }
        return;
    };
    let own = layers.own.as_ref().map(|(_, own)| match own {
        Said::Caller => ToolGrants::Caller,
        Said::Aliases(aliases) => {
            let aliases = aliases.iter().map(|(_, alias, grant)| (alias.clone(), grant.clone()));
            ToolGrants::aliases(aliases)
        }
    });
    let is_within = |one: &ToolGrants| {
        ceiling.value.tools.contains(one) || own.iter().any(|it| it.contains(one))
    };
    let effective = layers.effective;
    let granted = match said(effective, name, report) {
        Said::Caller => {
            let caller = ToolGrants::Caller;
            let name = Some(ToolGrants::CALLER);
            match entries.takes_effect(effective, is_within(&caller), name, &caller) {
                true => caller,
                false => ToolGrants::None,
            }
        }
        Said::Aliases(aliases) => {
            let mut granted = BTreeMap::new();
            for (at, alias, grant) in aliases {
                let one = ToolGrants::aliases([(alias.clone(), grant.clone())]);
                if !entries.takes_effect(at, is_within(&one), Some(alias.as_str()), &one) {
                    continue;
                }
                for line in one.lines() {
                    entries.grants.place(ToolGrants::KEY, line, at.origin());
                }
                granted.insert(alias, grant);
            }
            ToolGrants::aliases(granted)
        }
    };
    entries.finish(&layers);
    entries.grants.set(|grants| &mut grants.tools, effective.sourced(granted));
}

/// Warns of granted tools that no file names. This is not an error, because a program may still
/// provide them.
pub(crate) fn warn_of_absent(tools: &mut BTreeMap<ToolName, ConfiguredTool>) {
    let names: Vec<_> = tools.keys().cloned().collect();
    for tool in tools.values_mut().filter(|tool| tool.is_enabled()) {
        let absent = |grant: &ToolGrant| names.binary_search(&grant.tool).is_err();
        let mut warnings = Vec::new();
        for (alias, grant) in tool.grants.value.tools.iter().filter(|it| absent(it.1)) {
            let nearest = nearest(grant.tool.as_str(), names.iter().map(ToolName::as_str));
            let hint = did_you_mean(nearest).map(|hint| format!("; {hint}"));
            let message = format!(
                "`{alias}` is `{}`, but no tool has that name: calls of it fail, unless the \
                 embedding program provides the tool{}",
                grant.tool,
                hint.unwrap_or_default()
            );
            let one = ToolGrants::aliases([(alias.clone(), grant.clone())]);
            let line = one.lines().pop().unwrap_or_default();
            let place = tool.grants.place_of(ToolGrants::KEY, &line).clone();
            let kind = DiagnosticKind::Grant(ToolGrants::KEY);
            warnings.push(Problem::new(kind, message).at(place));
        }
        tool.grants.warnings.extend(warnings);
    }
}

/// Returns the grants of a file; mistakes in it are reported and omitted.
fn said<'a>(at: At<'a, ToolsConfig>, name: &ToolName, report: &mut Report) -> Said<'a> {
    let table = match at.value {
        StringOr::Short(word) if word == ToolGrants::CALLER => return Said::Caller,
        StringOr::Short(word) => {
            report.at(at, not_tools(word));
            return Said::Aliases(Vec::new());
        }
        StringOr::Other(table) => table,
    };
    let count = table.iter().len();
    if count > ToolGrants::MOST {
        let most = ToolGrants::MOST;
        report.at(at, format!("{count} tools are listed; the limit is {most}"));
        return Said::Aliases(Vec::new());
    }
    let mut aliases = Vec::new();
    for part in table.parts(at.file) {
        let alias = match Alias::new(part.key.value) {
            Ok(alias) => alias,
            Err(error) => {
                report.at(part.key, not_an_alias(&error));
                continue;
            }
        };
        let Some(grant) = grant(part.at, report) else { continue };
        match itself(&alias, &grant, name) {
            Ok(()) => aliases.push((part.key, alias, grant)),
            Err(problem) => report.at(part.at, problem),
        }
    }
    Said::Aliases(aliases)
}

/// Returns the message for a string instead of a table of aliases.
fn not_tools(word: &str) -> String {
    format!(
        "`{}` does not name tools; write `tools = \"{}\"` for all tools that the caller may call, \
         or a table such as `tools = {{ search = \"search_files\" }}`",
        shown(word),
        ToolGrants::CALLER
    )
}

fn not_an_alias(error: &ToolNameError) -> String {
    format!("an alias must have the form of a tool name: {error}")
}

fn itself(alias: &Alias, grant: &ToolGrant, name: &ToolName) -> Result<(), Problem> {
    match grant.tool == *name {
        true => Err(Problem::from(format!(
            "`{alias}` is `{name}` itself, but a tool may not call itself; remove it, or name \
             another tool"
        ))),
        false => Ok(()),
    }
}

/// Returns a grant. Mistakes in any of its fields are reported.
fn grant(at: At<'_, StringOr<ToolGrantConfig>>, report: &mut Report) -> Option<ToolGrant> {
    let config = match at.value {
        StringOr::Short(tool) => return tool_name(at.with(tool), report).map(ToolGrant::new),
        StringOr::Other(config) => at.with(config),
    };
    let tool = tool_name(config.value.tool.at(at.file), report);
    let conditions = match config.inner(|config| config.conditions.as_ref()) {
        Some(conditions) => conditions_of(conditions, report),
        None => Some(BTreeMap::new()),
    };
    let rate = match config.inner(|config| config.rate.as_ref()) {
        Some(rate) => match rate.value.parse::<Rates>() {
            Ok(rates) => Some(Some(rates)),
            Err(error) => {
                report.at(rate, error);
                None
            }
        },
        None => Some(None),
    };
    Some(ToolGrant { tool: tool?, conditions: conditions?, rate: rate? })
}

fn tool_name(at: At<'_, String>, report: &mut Report) -> Option<ToolName> {
    ToolName::new(at.value.as_str()).map_err(|error| report.at(at, error)).ok()
}

fn conditions_of(
    at: At<'_, Table<ConditionConfig>>,
    report: &mut Report,
) -> Option<BTreeMap<ArgumentPath, Condition>> {
    let count = at.value.iter().len();
    if count > ToolGrant::MOST_CONDITIONS {
        let most = ToolGrant::MOST_CONDITIONS;
        report.at(at, format!("{count} arguments are listed; the limit is {most}"));
        return None;
    }
    let mut conditions = BTreeMap::new();
    for part in at.value.parts(at.file) {
        let argument =
            ArgumentPath::new(part.key.value).map_err(|error| report.at(part.key, error));
        let condition = json(part.at.value.any())
            .and_then(|value| Condition::new(&value).map_err(Problem::from));
        let condition = condition.map_err(|problem| report.at(part.at, problem));
        if let (Ok(argument), Ok(condition)) = (argument, condition) {
            conditions.insert(argument, condition);
        }
    }
    (conditions.len() == count).then_some(conditions)
}

/// Reads `caller`, `ALIAS=TOOL` or `ALIAS={ tool = "…" }`.
fn typed(text: &str) -> Result<Grants, Problem> {
    let tools = match text {
        ToolGrants::CALLER => ToolGrants::Caller,
        text => {
            let (alias, grant) = text.split_once('=').ok_or_else(|| not_tools(text))?;
            let alias = Alias::new(alias.trim()).map_err(|error| not_an_alias(&error))?;
            let grant = match grant.trim() {
                text if text.starts_with('{') => table(text, self::grant)?,
                tool => ToolGrant::new(ToolName::new(tool.trim_matches('"'))?),
            };
            ToolGrants::aliases([(alias, grant)])
        }
    };
    Ok(Grants { tools, ..Grants::default() })
}

fn add(one: Grants, target: CallTarget<'_>) -> Result<Grants, Problem> {
    for (alias, grant) in one.tools.iter() {
        itself(alias, grant, target.name)?;
    }
    let both = |has, wanted| {
        Err(Problem::from(format!(
            "the tool is granted {has}, which a call cannot combine with {wanted}; change `tools` \
             of its grants instead"
        )))
    };
    const CALLER: &str = "the tools of its caller";
    const ALIASES: &str = "aliases";
    let tools = &mut target.grants.value_mut().tools;
    *tools = match (&*tools, &one.tools) {
        (ToolGrants::Caller, ToolGrants::Aliases(_)) => return both(CALLER, ALIASES),
        (own @ ToolGrants::Aliases(_), ToolGrants::Caller) if !Kind::is_empty(own) => {
            return both(ALIASES, CALLER);
        }
        (ToolGrants::Aliases(own), ToolGrants::Aliases(added)) => {
            let added = added.iter().map(|(alias, grant)| (alias.clone(), grant.clone()));
            let mut aliases = BTreeMap::clone(own);
            aliases.extend(added);
            ToolGrants::aliases(aliases)
        }
        (_, granted) => granted.clone(),
    };
    Ok(one)
}
