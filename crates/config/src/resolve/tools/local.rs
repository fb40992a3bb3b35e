//! Tools with a component of their own: in a file, or provided by the embedding program.

use std::path::PathBuf;

use kitbag_base::text::{alternatives, shown_path};

use super::candidate::Candidate;
use super::names::{is_same_file, two_tools};
use super::scripts::Script;
use crate::config::{BytesTool, CommandTemplate, ComponentCall, LocalTool, Parameters, Template};
use crate::format::ToolConfig;
use crate::format::key::KeyPath;
use crate::format::span::{At, Part, all, copied, last};
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::is_fixed;
use crate::read::file::Layer;
use crate::report::text::relative_path;
use crate::report::{Piece, Report};
use crate::resolve::context::Context;
use crate::resolve::parameters::{self, ParameterRole};

pub(super) fn local(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    path: &KeyPath<'_>,
    report: &mut Report,
) -> Option<LocalTool> {
    let Candidate { name, parts, .. } = candidate;
    let said = candidate.said_of_kind();
    let builtins = all(&said, |tool| tool.builtin.as_ref());
    // `builtin` in a manifest was already refused.
    for at in builtins.filter(|at| at.file.layer() != Layer::Manifest) {
        let problem = format!(
            "local tool `{name}` may not have `builtin`; remove it, or write `source = \
             \"builtin\"`"
        );
        report.at(at, problem);
    }
    let wasm = wasm(context, candidate, path, report);
    let replaces = context.replaces(parts, report);
    let (call, parameters) = component_call(context, parts, path, report);
    let mut local = LocalTool::new(wasm?, replaces, parameters);
    local.call = call;
    if let Some(dev) = last(&candidate.tables, |tool| tool.dev.as_ref()) {
        local.dev = dev.sourced(*dev.value);
    }
    let lock = match candidate.is_of_workspace() {
        true => {
            local.layer = Layer::Workspace;
            &context.locks.workspace
        }
        false => &context.locks.user,
    };
    if let Some(recorded) = lock.recorded(name) {
        local.record(name, recorded);
    }
    Some(local)
}

fn wasm(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    path: &KeyPath<'_>,
    report: &mut Report,
) -> Option<Sourced<PathBuf>> {
    let Candidate { name, found, tables, .. } = candidate;
    let mut wasm = None;
    for at in all(tables, |tool| tool.wasm.as_ref()) {
        let is_for_all = at.file.layer() == Layer::User;
        if is_for_all && !at.value.is_empty() && !is_fixed(at.value) {
            report.at(at, relative_path(at.value));
        } else {
            wasm = context.path(at, report).map(|path| (at, path));
        }
    }
    match (found, wasm) {
        (Some(found), Some((at, path))) if !is_same_file(&found.wasm, &path) => {
            let problem = match path.try_exists() {
                Ok(false) => format!(
                    "this file does not exist, but `{name}` is the component `{}`; remove `wasm`",
                    shown_path(&found.shown)
                ),
                _ => two_tools(name, &found.shown),
            };
            report.at(at, problem);
            None
        }
        (Some(found), _) => {
            let origin = Origin::Found { path: found.shown.clone() };
            Some(Sourced { value: found.wasm.clone(), origin })
        }
        (None, Some((at, path))) => Some(at.sourced(path)),
        (None, None) => {
            let is_written = last(tables, |tool| tool.wasm.as_ref()).is_some();
            let needs_source = last(tables, |tool| tool.source.as_ref()).is_none();
            if !is_written && !needs_source && !context.invalid.covers(&path.key("wasm")) {
                let problem =
                    format!("local tool `{name}` has no `wasm`; add the path of its component");
                report.at(tables[0].at, problem);
            }
            None
        }
    }
}

/// Returns a tool whose component the embedding program provides: no file names its path.
pub(super) fn bytes(
    context: &Context<'_>,
    candidate: &Candidate<'_>,
    path: &KeyPath<'_>,
    report: &mut Report,
) -> BytesTool {
    let Candidate { name, found, tables, parts, .. } = candidate;
    let script = match candidate.script {
        Script::Found(script) => Some(&script.shown),
        Script::None | Script::Unknown => None,
    };
    if let Some(path) = found.map(|found| &found.shown).or(script) {
        let origin = Origin::Found { path: path.clone() };
        let problem = format!(
            "local tool `{name}` has the name of a tool of the embedding program; rename it"
        );
        report.piece(origin, problem, (Layer::Manifest, Piece::Component));
    }
    for part in tables {
        for (key, span) in part.at.value.source_keys() {
            let problem = format!(
                "tool `{name}` may not have `{key}`: the embedding program provides its component; \
                 remove the key, or rename the tool of this table"
            );
            report.span(part.at.file, span, problem);
        }
    }
    let (call, parameters) = component_call(context, parts, path, report);
    BytesTool { component: (*name).clone(), call, parameters }
}

/// Returns the part of a component that a tool calls, and its configured arguments.
fn component_call(
    context: &Context<'_>,
    parts: &[Part<'_, ToolConfig>],
    path: &KeyPath<'_>,
    report: &mut Report,
) -> (ComponentCall, Option<Parameters>) {
    let mut parameters = component_parameters(context, parts, path, report);
    let command = last(parts, |tool| tool.command.as_ref());
    let stdin = last(parts, |tool| tool.stdin.as_ref());
    let mut template = CommandTemplate::default();
    let mut origin = None;
    if let Some(command) = command {
        // A command line without arguments of the call takes none.
        let known = parameters.get_or_insert_default();
        let words = command.value.iter().map(|word| word.at(command.file));
        template.arguments = words.filter_map(|at| self::template(at, known, report)).collect();
        origin = Some(command.origin());
    }
    if let Some(stdin) = stdin {
        let known = parameters.get_or_insert_default();
        template.stdin = self::template(stdin, known, report);
        origin = origin.or_else(|| Some(stdin.origin()));
    }
    let call = ComponentCall {
        function: copied(parts, |tool| tool.function.as_ref()),
        command: origin.map(|origin| Sourced { value: template, origin }),
    };
    (call, parameters)
}

/// Reads a template, whose arguments must be parameters of the tool.
fn template(at: At<'_, String>, known: &Parameters, report: &mut Report) -> Option<Template> {
    let template = Template::read(at.value).map_err(|problem| report.at(at, problem)).ok()?;
    let is_unknown = |name: &&str| !known.entries.iter().any(|(known, _)| known == name);
    if let Some(unknown) = template.names().find(is_unknown) {
        let known: Vec<_> = known.entries.iter().map(|(name, _)| name.as_str()).collect();
        let hint = match known.is_empty() {
            true => format!("add `[tools.NAME.parameters.{unknown}]`"),
            false => format!("its parameters are {}", alternatives(&known)),
        };
        report.at(at, format!("`{{{unknown}}}` is not a parameter of the tool; {hint}"));
    }
    Some(template)
}

/// Refuses keys that only a component has.
pub(super) fn check_no_call(candidate: &Candidate<'_>, is: &str, report: &mut Report) {
    let Candidate { name, .. } = candidate;
    for part in candidate.said_of_kind() {
        for (key, span) in part.at.value.call_keys() {
            let problem = format!("tool `{name}` may not have `{key}`: {is}; remove it");
            report.span(part.at.file, span, problem);
        }
    }
}

/// Returns the configured arguments of a component.
fn component_parameters(
    context: &Context<'_>,
    parts: &[Part<'_, ToolConfig>],
    path: &KeyPath<'_>,
    report: &mut Report,
) -> Option<Parameters> {
    let parameters: Vec<_> = all(parts, |tool| tool.parameters.as_ref()).collect();
    (!parameters.is_empty()).then(|| {
        parameters::merged(
            context,
            &path.key("parameters"),
            &parameters,
            ParameterRole::Argument,
            report,
        )
    })
}
