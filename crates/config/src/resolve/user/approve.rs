//! The calls that need approval.

use kitbag_base::text::shown;
use kitbag_contract::is_class;
use kitbag_policy::{ApprovalRule, ApprovalRuleError, ClassRule};
use serde_json::Map;

use crate::config::ToolApproval;
use crate::format::span::{At, Part, StringOr, Table, Written, all};
use crate::format::{ApproveConfig, ClassConfig, ConditionConfig, ToolConfig, WhenConfig};
use crate::layers::origin::Sourced;
use crate::read::file::Layer;
use crate::report::{Problem, Report};
use crate::resolve::context::{ConfigFiles, Context, tables};
use crate::resolve::parameters::value::json;

/// Returns the rule for tools without a rule of their own in the user config. Other files have no
/// such table.
pub(crate) fn default(
    configs: &ConfigFiles<'_>,
    report: &mut Report,
) -> Option<Sourced<ApprovalRule>> {
    let (file, table) = tables(configs, |config| config.approve.as_ref()).next()?;
    let at = table.default.as_ref()?.at(file);
    Some(at.sourced(rule(at, report)?))
}

pub(crate) fn classes(
    configs: &ConfigFiles<'_>,
    report: &mut Report,
) -> Vec<(String, Sourced<ClassRule>)> {
    let own = tables(configs, |config| config.approve.as_ref()?.classes.as_ref()).next();
    let mut classes = Vec::new();
    for part in own.into_iter().flat_map(|(file, table)| table.parts(file)) {
        let pattern = part.key.value;
        let start = pattern.strip_suffix('*').unwrap_or(pattern);
        if pattern != "*" && !is_class(start) {
            let problem = format!(
                "`{}` is not a class: use up to 64 letters, digits, `:`, `_`, `-` and `.`, or a \
                 prefix and `*`",
                shown(pattern)
            );
            report.at(part.key, problem);
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

/// Returns the rules of all layers. A workspace can only add to the user's rules.
pub(crate) fn rules(
    context: &Context<'_>,
    parts: &[Part<'_, ToolConfig>],
    report: &mut Report,
) -> ToolApproval {
    let mut approval = ToolApproval::default();
    let mut is_said_by_user = false;
    for at in all(parts, |tool| tool.approve.as_ref()) {
        let is_own = at.file.layer() == Layer::User;
        is_said_by_user |= is_own;
        match rule(at, report) {
            Some(ApprovalRule::Never) if is_own => approval.never = Some(at.origin()),
            // The files of a workspace remove no rule.
            Some(ApprovalRule::Never) | None => {}
            Some(rule) => approval.rules.push(at.sourced(rule)),
        }
    }
    if !is_said_by_user {
        approval.add_default(context.approve_default);
    }
    approval
}

/// Returns the rules of a server's tool. In each file a rule of the tool replaces that of its
/// server. A workspace can only add to the user's rules.
pub(crate) fn of_server_tool(
    context: &Context<'_>,
    server: &[(Layer, Sourced<ApprovalRule>)],
    parts: &[Part<'_, ToolConfig>],
    report: &mut Report,
) -> ToolApproval {
    let mut approval = rules(context, parts, report);
    let has_own =
        |layer: Layer| all(parts, |tool| tool.approve.as_ref()).any(|at| at.file.layer() == layer);
    let of_server = server.iter().filter(|(layer, _)| !has_own(*layer));
    let of_server: Vec<_> = of_server.collect();
    if !has_own(Layer::User) && of_server.iter().any(|(layer, _)| *layer == Layer::User) {
        // The rule for the server replaces the default of the user.
        let default = context.approve_default;
        approval.rules.retain(|rule| Some(rule) != default);
        approval.never =
            approval.never.filter(|origin| default.is_none_or(|default| default.origin != *origin));
    }
    for (layer, rule) in of_server {
        match rule.value {
            ApprovalRule::Never if *layer == Layer::User => {
                approval.never = Some(rule.origin.clone());
            }
            ApprovalRule::Never => {}
            _ => approval.rules.push(rule.clone()),
        }
    }
    approval
}

pub(crate) fn rule(at: At<'_, ApproveConfig>, report: &mut Report) -> Option<ApprovalRule> {
    let rule = match &at.value.0 {
        StringOr::Short(word) => ApprovalRule::of_word(word).map_err(Problem::from),
        StringOr::Other(WhenConfig { when }) => conditions(when),
    };
    rule.map_err(|problem| report.at(at, problem)).ok()
}

fn conditions(when: &Written<Table<ConditionConfig>>) -> Result<ApprovalRule, Problem> {
    let entries = when.value.iter();
    let entries =
        entries.map(|entry| Ok((entry.key.value.clone(), json(entry.value.value.any())?)));
    let conditions = entries.collect::<Result<Map<_, _>, Problem>>()?;
    ApprovalRule::of_conditions(&conditions).map_err(|error: ApprovalRuleError| error.into())
}
