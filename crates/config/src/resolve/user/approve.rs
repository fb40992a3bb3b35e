//! Before which calls a person is asked.

use kitbag_base::text::shown;
use kitbag_contract::is_class;
use kitbag_policy::{ApprovalRule, ApprovalRuleError, ClassRule};
use serde_json::Map;

use crate::config::ToolApproval;
use crate::format::spanned::{At, Part, StringOr, Table, Written, all};
use crate::format::{
    ApproveConfig, ClassConfig, ConditionConfig, ConfigFile, ToolConfig, WhenConfig,
};
use crate::layers::origin::Sourced;
use crate::read::file::{Layer, SourceFile};
use crate::report::Problem;
use crate::resolve::parameters::value::json;
use crate::resolve::resolver::Resolver;

impl Resolver<'_> {
    /// What counts for tools of which the user's own file says nothing else. Other files have
    /// no such table.
    pub(in crate::resolve) fn approve_default(
        &mut self,
        layers: &[(&SourceFile, &ConfigFile)],
    ) -> Option<Sourced<ApprovalRule>> {
        let mut tables =
            layers.iter().filter_map(|(file, layer)| Some((*file, layer.approve.as_ref()?)));
        let (file, table) = tables.next()?;
        let at = table.default.as_ref()?.at(file);
        Some(at.sourced(self.approval_rule(at)?))
    }

    /// What becomes of questions of a class, as the user's own file says.
    pub(in crate::resolve) fn approve_classes(
        &mut self,
        layers: &[(&SourceFile, &ConfigFile)],
    ) -> Vec<(String, Sourced<ClassRule>)> {
        let own = layers
            .iter()
            .find_map(|(file, layer)| Some((*file, layer.approve.as_ref()?.classes.as_ref()?)));
        let mut classes = Vec::new();
        for part in own.into_iter().flat_map(|(file, table)| table.parts(file)) {
            let pattern = part.key.value;
            let start = pattern.strip_suffix('*').unwrap_or(pattern);
            if pattern != "*" && !is_class(start) {
                let problem = format!(
                    "`{}` is no class: letters, digits, `:`, `_`, `-` and `.`, at most 64 of them, \
                     or the beginning of one and `*`",
                    shown(pattern)
                );
                self.report.at(part.key, problem);
                continue;
            }
            let rule = match part.at.value {
                ClassConfig::Ask => ClassRule::Ask,
                ClassConfig::Deny => ClassRule::Deny,
            };
            classes.push((pattern.to_owned(), part.at.sourced(rule)));
        }
        classes
    }

    /// The rules of every layer. A workspace can only add to what the user says.
    pub(in crate::resolve) fn approve(&mut self, parts: &[Part<'_, ToolConfig>]) -> ToolApproval {
        let mut approval = ToolApproval::default();
        let mut is_said_by_user = false;
        for at in all(parts, |tool| tool.approve.as_ref()) {
            let is_own = at.file.layer() == Layer::User;
            is_said_by_user |= is_own;
            match self.approval_rule(at) {
                Some(ApprovalRule::Never) if is_own => approval.never = Some(at.origin()),
                // The files of a workspace take nothing away.
                Some(ApprovalRule::Never) | None => {}
                Some(rule) => approval.rules.push(at.sourced(rule)),
            }
        }
        if !is_said_by_user {
            approval.add_default(self.approve_default.as_ref());
        }
        approval
    }

    fn approval_rule(&mut self, at: At<'_, ApproveConfig>) -> Option<ApprovalRule> {
        let rule = match &at.value.0 {
            StringOr::String(word) => ApprovalRule::of_word(word).map_err(Problem::from),
            StringOr::Other(WhenConfig { when }) => conditions(when),
        };
        rule.map_err(|problem| self.report.at(at, problem)).ok()
    }
}

fn conditions(when: &Written<Table<ConditionConfig>>) -> Result<ApprovalRule, Problem> {
    let entries = when.value.iter();
    let entries =
        entries.map(|entry| Ok((entry.key.value.clone(), json(entry.value.value.any())?)));
    let conditions = entries.collect::<Result<Map<_, _>, Problem>>()?;
    ApprovalRule::of_conditions(&conditions).map_err(|error: ApprovalRuleError| error.into())
}
