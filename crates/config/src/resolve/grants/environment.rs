//! Variables of the environment that are granted.

use std::collections::HashSet;

use kitbag_policy::{VariableGrant, VariableName, VariableNameError};

use super::ceiling::Code;
use crate::config::ToolGrants;
use crate::error::Report;
use crate::origin::Sourced;
use crate::problem::Problem;
use crate::resolve::resolver::Resolver;
use crate::sources::VariableValue;
use crate::written::{At, Written};

/// A list of names, as a file has it.
type Names = Vec<Written<String>>;

/// What the user's own file lets a workspace grant.
pub(super) fn ceiling(at: At<'_, Names>, report: &mut Report) -> Sourced<Vec<VariableGrant>> {
    let names = names(at, report).into_iter();
    at.sourced(names.map(|(_, name)| VariableGrant { name, value: None }).collect())
}

impl Resolver<'_> {
    /// The variables that a tool may read, each with its value. What a workspace grants
    /// beyond the ceiling is left out.
    pub(super) fn variables(
        &mut self,
        mut layers: Vec<At<'_, Names>>,
        is_enabled: bool,
        code: Code,
        grants: &mut ToolGrants,
    ) {
        let effective = layers.pop();
        // A weaker layer is overridden, but must be valid all the same.
        for weaker in layers {
            names(weaker, self.report);
        }
        let Some(effective) = effective else { return };
        let mut granted = Vec::new();
        for (at, name) in names(effective, self.report) {
            let ceiling = &self.grant_ceiling.value.variables;
            let is_within = ceiling.iter().any(|variable| variable.name == name);
            let setting = format!("env = [\"{name}\"]");
            if let Some(beyond) = self.beyond_ceiling(at, code, is_within, setting) {
                grants.warnings.extend(is_enabled.then_some(beyond));
                continue;
            }
            let value = self.variables.and_then(|variables| variables.get(name.as_str()));
            let mut warn = |problem| {
                grants.warnings.extend(is_enabled.then(|| at.sourced(problem)));
            };
            if name.looks_like_secret() {
                warn(Problem::SecretVariable { name: name.to_string() });
            }
            let value = match value {
                Some(VariableValue::Text(value)) => Some(value),
                Some(VariableValue::Unusable(reason)) => {
                    warn(Problem::UnusableVariable { name: name.to_string(), reason });
                    None
                }
                None => {
                    warn(Problem::UnsetVariable { name: name.to_string() });
                    None
                }
            };
            granted.push(VariableGrant { name, value });
        }
        grants.set(|grants| &mut grants.variables, effective.sourced(granted));
    }
}

/// The names of a list that can be granted, each with its place.
fn names<'a>(list: At<'a, Names>, report: &mut Report) -> Vec<(At<'a, String>, VariableName)> {
    let (count, most) = (list.value.len(), VariableGrant::MOST);
    if count > most {
        let reason = format!("{count} variables are listed, and {most} is the most");
        report.at(list, Problem::Grant { kind: VariableGrant::KEY, reason });
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for entry in list.value {
        let at = entry.at(list.file);
        match VariableName::new(at.value.as_str()) {
            Ok(name) if !seen.insert(name.clone()) => {
                report.at(at, Problem::DuplicateChoice { value: at.value.clone() });
            }
            Ok(name) => names.push((at, name)),
            Err(error) => report.at(at, error),
        }
    }
    names
}

impl From<VariableNameError> for Problem {
    fn from(error: VariableNameError) -> Self {
        Self::Grant { kind: VariableGrant::KEY, reason: error.to_string() }
    }
}
