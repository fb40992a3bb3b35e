//! Conflicts between tools of the layers with the same name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kitbag_base::text::shown_path;
use kitbag_contract::ToolName;

use crate::config::{ConfiguredTool, ToolSource};
use crate::format::span::{Part, last};
use crate::format::{SourceConfig, ToolConfig};
use crate::layers::origin::Origin;
use crate::layers::path::is_fixed;
use crate::read::file::{Layer, SourceFile};
use crate::report::{Piece, Problem, Report};
use crate::resolve::context::Context;

/// Returns whether the user config uses the name of a component or script of the workspace for
/// another tool. The user config takes precedence, with a warning.
pub(super) fn is_unused(
    context: &Context<'_>,
    name: &ToolName,
    shown: &Arc<Path>,
    found: Option<&Path>,
    tables: &[Part<'_, ToolConfig>],
    report: &mut Report,
) -> bool {
    let is_own = |file: &SourceFile| file.layer() == Layer::User;
    let source = last(tables, |tool| tool.source.as_ref());
    let builtin = source.filter(|at| *at.value == SourceConfig::Builtin && is_own(at.file));
    let wasm = last(tables, |tool| tool.wasm.as_ref()).filter(|at| is_own(at.file));
    let other = wasm.filter(|at| {
        is_fixed(at.value)
            && context
                .bases
                .absolute(at.value)
                .is_ok_and(|path| found.is_none_or(|found| !is_same_file(found, &path)))
    });
    let Some(own) = builtin.map(|at| at.origin()).or(other.map(|at| at.origin())) else {
        return false;
    };
    let message =
        format!("is ignored: your user config has a tool `{name}` ({own}); rename this one");
    report.warn(Problem::from(message).at(Origin::Found { path: shown.clone() }));
    true
}

/// Returns whether a component or script has the name of a built-in that it does not replace. It is
/// then omitted, and the built-in stays.
pub(super) fn shadows(
    context: &Context<'_>,
    name: &ToolName,
    shown: &Arc<Path>,
    manifest: Option<&ToolConfig>,
    tables: &[Part<'_, ToolConfig>],
    report: &mut Report,
) -> bool {
    let by_table = last(tables, |tool| tool.replaces.as_ref()).map(|at| at.value.as_str());
    let by_manifest = manifest.and_then(|tool| tool.replaces.as_ref()).map(|it| &*it.value);
    let replaces = by_table.or(by_manifest);
    let shadows = context.named(name.as_str()).is_some() && replaces != Some(name.as_str());
    if shadows {
        let origin = Origin::Found { path: shown.clone() };
        let piece = (Layer::Manifest, Piece::Component);
        report.piece(origin, shadows_builtin(name), piece);
    }
    shadows
}

/// Refuses two tools that replace the same built-in.
pub(super) fn check_replaced_once(tools: &BTreeMap<ToolName, ConfiguredTool>, report: &mut Report) {
    let mut replaced: BTreeMap<&str, &ToolName> = BTreeMap::new();
    for (name, tool) in tools {
        let Some(builtin) = tool.source.value.replaces() else { continue };
        if let Some(other) = replaced.insert(&builtin.value, name) {
            // The user config overrides the workspace.
            let layer = |tool: &ConfiguredTool| match &tool.source.value {
                ToolSource::Local(local) => local.layer,
                _ => Layer::Workspace,
            };
            let is_other = layer(tool) == Layer::User && layer(&tools[other]) != Layer::User;
            let spoilt = if is_other { other } else { name };
            let piece = (layer(&tools[spoilt]), Piece::Tool(spoilt.to_string()));
            let (builtin, origin) = (&builtin.value, builtin.origin.clone());
            let problem =
                format!("`{builtin}` is replaced by `{other}` already; remove one `replaces`");
            report.piece(origin, problem, piece);
        }
    }
}

/// Returns the message for two components with one name. `other` is the displayed path of the
/// component in `.kitbag/tools`.
pub(super) fn two_tools(name: &ToolName, other: &Path) -> String {
    format!(
        "two tools are named `{name}`: this one and `{}`; rename one of them",
        shown_path(other)
    )
}

pub(super) fn shadows_builtin(name: &ToolName) -> String {
    format!(
        "local tool `{name}` has the name of a built-in tool; rename it, or replace the built-in \
         with `replaces = \"{name}\"` in `tools.{name}`"
    )
}

/// Returns whether two paths lead to the same file. The files are not opened.
pub(super) fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}
