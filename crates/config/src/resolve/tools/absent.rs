//! Tables of the user's own file for tools that a workspace does not have: the file is for all
//! workspaces, so that such a table says nothing here.

use std::collections::BTreeMap;

use kitbag_base::text::nearest;
use kitbag_contract::ToolName;

use crate::config::ConfiguredTool;
use crate::format::ToolConfig;
use crate::format::spanned::Part;
use crate::read::file::Layer;
use crate::report::text::did_you_mean;
use crate::report::{Diagnostic, DiagnosticKind, Excerpt, Problem};
use crate::resolve::resolver::{AbsentTool, Resolver};

impl Resolver<'_> {
    /// Whether the user's own file alone has tables of a name, and they make no tool. What they
    /// say counts where there is one.
    pub(in crate::resolve) fn is_absent(
        &mut self,
        name: &ToolName,
        tables: &[Part<'_, ToolConfig>],
    ) -> bool {
        let rules = |part: &Part<'_, ToolConfig>| {
            part.at.file.layer() == Layer::User && !part.at.value.makes_tool()
        };
        let is_known = self.named(name.as_str()).is_some() || self.bytes_tools.contains(name);
        if is_known || !tables.iter().all(rules) {
            return false;
        }
        let warnings = tables.iter().map(|Part { key, .. }| AbsentTool {
            name: name.clone(),
            warning: Problem::new(
                DiagnosticKind::AbsentTool(name.to_string()),
                format_args!("there is no tool `{name}` here, and its table has no effect"),
            )
            .at(key.origin())
            .quoting(Excerpt::new(key.file.text(), key.span)),
        });
        self.absent.extend(warnings);
        true
    }

    /// What is said of such tables, once all tools are known.
    pub(in crate::resolve) fn absent_tools(
        &mut self,
        tools: &BTreeMap<ToolName, ConfiguredTool>,
    ) -> Vec<Diagnostic> {
        let mut absent = std::mem::take(&mut self.absent);
        absent.sort_by(|one, other| one.name.cmp(&other.name));
        let absent = absent.into_iter().filter(|absent| !tools.contains_key(&absent.name));
        let warning = |AbsentTool { name, warning }: AbsentTool| {
            let known = tools.keys().map(ToolName::as_str);
            Diagnostic { hint: did_you_mean(nearest(name.as_str(), known)), ..warning }
        };
        absent.map(warning).collect()
    }
}
