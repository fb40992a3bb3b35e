//! Tables of the user config for tools that a workspace does not have. The user config is for all
//! workspaces, so such a table has no effect here.

use std::collections::BTreeMap;

use kitbag_base::text::nearest;
use kitbag_contract::ToolName;

use crate::config::ConfiguredTool;
use crate::format::ToolConfig;
use crate::format::span::{At, Part};
use crate::read::file::Layer;
use crate::report::text::did_you_mean;
use crate::report::{Diagnostic, DiagnosticKind, Excerpt, Problem};
use crate::resolve::context::Context;

pub(crate) type AbsentTables<'a> = BTreeMap<ToolName, Vec<At<'a, str>>>;

/// Returns whether only the user config has tables with a name, and none defines a tool.
pub(super) fn is_absent(
    context: &Context<'_>,
    name: &ToolName,
    tables: &[Part<'_, ToolConfig>],
) -> bool {
    let rules = |part: &Part<'_, ToolConfig>| {
        part.at.file.layer() == Layer::User && !part.at.value.makes_tool()
    };
    let is_known = context.named(name.as_str()).is_some() || context.bytes_tools.contains(name);
    !is_known && tables.iter().all(rules)
}

/// Returns the warnings for such tables, once all tools are known.
pub(crate) fn warnings(
    absent: AbsentTables<'_>,
    tools: &BTreeMap<ToolName, ConfiguredTool>,
) -> Vec<Diagnostic> {
    let absent = absent.into_iter().filter(|(name, _)| !tools.contains_key(name));
    let warning = |(name, keys): (ToolName, Vec<At<'_, str>>)| {
        let hint = did_you_mean(nearest(name.as_str(), tools.keys().map(ToolName::as_str)));
        let message = format!("no tool is named `{name}` here, so its table has no effect");
        let problem =
            Problem::new(DiagnosticKind::AbsentTool(name.to_string()), message).hint(hint);
        let warnings = keys.into_iter().map(|key| {
            let excerpt = Excerpt::new(key.file.text(), key.span);
            problem.clone().at(key.origin()).quoting(excerpt)
        });
        warnings.collect::<Vec<_>>()
    };
    absent.flat_map(warning).collect()
}
