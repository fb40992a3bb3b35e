//! Tools that are Python scripts: reads the header, and finds the script of a table.

use kitbag_base::text::{nearest, shown, shown_path};
use kitbag_contract::ToolName;
use kitbag_policy::RequestedGrants;
use serde_json::{Map, Value};

use crate::config::ScriptTool;
use crate::format::ToolConfig;
use crate::format::key::KeyPath;
use crate::format::span::{AnyValue, At, Part, Table, all};
use crate::layers::origin::{Origin, Sourced};
use crate::read::FoundScript;
use crate::read::file::Layer;
use crate::report::text::{did_you_mean, known_words, unknown_key};
use crate::report::{Problem, Report};
use crate::resolve::context::Context;
use crate::resolve::parameters::value::json;
use crate::resolve::parameters::{self, ParameterRole};
use crate::resolve::tools::candidate::Candidate;
use crate::resolve::tools::local::check_no_call;
use crate::resolve::tools::names::shadows_builtin;

#[derive(Clone, Copy)]
pub(super) enum Script<'a> {
    /// The tool is not a script.
    None,
    /// An existing script.
    Found(&'a FoundScript),
    /// A script that does not exist, which was reported.
    Unknown,
}

pub(super) fn named<'a>(
    context: &Context<'a>,
    tables: &[Part<'_, ToolConfig>],
    report: &mut Report,
) -> Script<'a> {
    let own = all(tables, |tool| tool.script.as_ref()).find(is_own);
    if let Some(at) = own {
        let problem = "a script belongs to a workspace: set `script` in `.kitbag/config.toml` of \
                       that workspace";
        report.at(at, problem);
        return Script::Unknown;
    }
    let Some(at) = script_key(tables) else { return Script::None };
    match context.scripts.get(at.value.as_str()) {
        Some(script) => Script::Found(script),
        None => {
            let names = || context.scripts.keys().map(ToolName::as_str);
            let hint = did_you_mean(nearest(at.value, names()))
                .or_else(|| known_words("scripts", names()));
            let name = shown(at.value);
            let problem =
                Problem::from(format!("no script in `.kitbag/scripts` is named `{name}`"));
            report.at(at, problem.hint(hint));
            Script::Unknown
        }
    }
}

pub(super) fn taken<'a, 'b>(
    context: &Context<'a>,
    tables: impl Iterator<Item = (&'b ToolName, &'b Vec<Part<'b, ToolConfig>>)>,
) -> Vec<&'a ToolName> {
    let taken = tables.filter_map(|(name, tables)| {
        let script = script_key(tables)?;
        let (script, _) = context.scripts.get_key_value(script.value.as_str())?;
        (script != name).then_some(script)
    });
    taken.collect()
}

/// Refuses `script` for a tool that is not a script.
pub(super) fn check_no_script(
    name: &ToolName,
    tables: &[Part<'_, ToolConfig>],
    is: &'static str,
    report: &mut Report,
) {
    for at in all(tables, |tool| tool.script.as_ref()) {
        report.at(at, format!("tool `{name}` may not have `script`: {is}; remove it"));
    }
}

pub(super) fn tool(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    script: &FoundScript,
    path: &KeyPath<'_>,
    report: &mut Report,
) -> ScriptTool {
    let Candidate { name, tables, parts, .. } = candidate;
    for part in tables {
        for (key, span) in part.at.value.source_keys() {
            let problem = format!(
                "`{name}` is the script `{}`, which may not have `{key}`; remove it",
                shown_path(&script.shown)
            );
            report.span(part.at.file, span, problem);
        }
    }
    check_no_call(candidate, "it is a script", report);
    let replaces = context.replaces(parts, report);
    let replaces_itself = replaces.as_ref().is_some_and(|builtin| builtin.value == name.as_str());
    if !script.is_named
        && context.named(name.as_str()).is_some()
        && !replaces_itself
        && let Some(at) = script_key(tables)
    {
        report.at(at, shadows_builtin(name));
    }
    let parameters: Vec<_> = all(parts, |tool| tool.parameters.as_ref()).collect();
    let parameters = parameters::merged(
        context,
        &path.key("parameters"),
        &parameters,
        ParameterRole::Variable,
        report,
    );
    let header = script.header.as_ref().map(|(file, header)| (&context.files[*file], header));
    let output = header.and_then(|(file, header)| header.output.as_ref().map(|it| it.at(file)));
    let requested = header.and_then(|(file, header)| header.grants.as_ref().map(|it| it.at(file)));
    let origin = match script.is_named {
        true => Origin::Caller,
        false => Origin::Found { path: script.shown.clone() },
    };
    ScriptTool {
        path: Sourced { value: script.path.clone(), origin },
        replaces,
        code: script.file.map(|file| context.files[file].shared_text()).unwrap_or_default(),
        parameters,
        output: output.and_then(|at| {
            let key = At { file: at.file, span: at.span, value: "output" };
            let path = path.key("output");
            let parameter = parameters::one(
                context,
                &path,
                &[Part { key, at }],
                ParameterRole::Output,
                report,
            )?;
            Some(at.sourced(parameter.schema()))
        }),
        asks: requested.map(|at| asks(at, path, report)).unwrap_or_default(),
    }
}

fn asks(
    at: At<'_, Table<AnyValue>>,
    path: &KeyPath<'_>,
    report: &mut Report,
) -> Map<String, Value> {
    let mut asks = Map::new();
    for part in at.value.parts(at.file) {
        let key = part.key.value;
        if !RequestedGrants::KEYS.contains(&key) {
            let table = path.key("grants").to_string();
            let hint = did_you_mean(nearest(key, RequestedGrants::KEYS))
                .or_else(|| known_words("keys", RequestedGrants::KEYS.into_iter()));
            report.at(part.key, Problem::from(unknown_key(key, &table)).hint(hint));
            continue;
        }
        let one = json(&part.at.value.0).and_then(|value| {
            let one = Map::from_iter([(key.to_owned(), value)]);
            RequestedGrants::read(&one)
                .map_err(|error| format!("this request is not valid: {error}"))?;
            Ok(one)
        });
        match one {
            Ok(one) => asks.extend(one),
            Err(problem) => report.at(part.at, problem),
        }
    }
    asks
}

/// Returns the script that the tables of a workspace name.
pub(super) fn script_key<'b>(tables: &[Part<'b, ToolConfig>]) -> Option<At<'b, String>> {
    all(tables, |tool| tool.script.as_ref()).rfind(|at| !is_own(at))
}

/// Returns whether a value is in the user config, which applies to all workspaces.
fn is_own(at: &At<'_, String>) -> bool {
    at.file.layer() == Layer::User
}
