//! Tools with a component of their own: in a file, or provided by the embedding program.

use std::path::PathBuf;

use kitbag_base::text::shown_path;

use super::candidate::Candidate;
use super::names::{is_same_file, two_tools};
use super::scripts::Script;
use crate::config::{BytesTool, LocalTool, Parameters};
use crate::format::ToolConfig;
use crate::format::key::KeyPath;
use crate::format::span::{Part, all, last};
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
    let parameters = component_parameters(context, parts, path, report);
    let mut local = LocalTool::new(wasm?, replaces, parameters);
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
    let parameters = component_parameters(context, parts, path, report);
    BytesTool { component: (*name).clone(), parameters }
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
