//! Variables of the environment that are granted.

use std::collections::HashSet;

use kitbag_policy::{SecretName, VariableGrant, VariableName};

use super::beyond::{Code, own_of, replaces};
use crate::config::ConfiguredGrants;
use crate::format::VariableConfig;
use crate::format::spanned::{At, Written};
use crate::layers::origin::Sourced;
use crate::read::sources::VariableValue;
use crate::report::text::listed_twice;
use crate::report::{DiagnosticKind, Problem, Report};
use crate::resolve::resolver::Resolver;

/// A list of names, as a file has it.
type Names = Vec<Written<String>>;

/// A variable that holds the placeholder of a secret.
#[derive(Clone, Debug)]
pub(super) struct Placeholder {
    pub(super) variable: VariableName,
    pub(super) secret: SecretName,
    /// The user's own file grants it to the tool, too.
    pub(super) is_own: bool,
}

/// What the user's own file lets a workspace grant.
pub(super) fn ceiling(at: At<'_, Names>, report: &mut Report) -> Sourced<Vec<VariableGrant>> {
    let names = names(at, |name| name, report).into_iter();
    at.sourced(names.map(|(_, _, name)| VariableGrant { name, value: None }).collect())
}

impl Resolver<'_> {
    /// The variables that a tool may read, each with its value. What a workspace grants
    /// beyond the ceiling and the user's own grants is left out. Returns those that hold the placeholder of a secret.
    pub(super) fn variables<'a>(
        &mut self,
        mut layers: Vec<At<'a, Vec<Written<VariableConfig>>>>,
        is_enabled: bool,
        code: Code,
        grants: &mut ConfiguredGrants,
    ) -> Vec<(At<'a, String>, Placeholder)> {
        let name = |variable: &'a VariableConfig| &variable.name;
        let mut placeholders = Vec::new();
        let Some(effective) = layers.pop() else { return placeholders };
        let own = own_of(&layers, code);
        // A weaker layer is overridden, but must be valid all the same.
        for weaker in layers {
            names(weaker, name, self.report);
        }
        let is_own = |entry: &VariableConfig| {
            own.is_some_and(|own| own.value.iter().any(|own| own.value == *entry))
        };
        let mut all_count = true;
        let mut granted = Vec::new();
        for (at, entry, name) in names(effective, name, self.report) {
            if let Some(secret) = &entry.secret {
                match SecretName::new(secret.as_str()) {
                    Ok(secret) => {
                        let is_own = is_own(entry);
                        placeholders.push((at, Placeholder { variable: name, secret, is_own }));
                    }
                    Err(error) => self.report.at(at, error),
                }
                continue;
            }
            let ceiling = &self.workspace_ceiling.value.variables;
            let is_within = is_own(entry) || ceiling.iter().any(|variable| variable.name == name);
            let setting = format!("env = [\"{name}\"]");
            if let Some(beyond) =
                self.beyond_ceiling(at, code, is_within, (VariableGrant::KEY, setting))
            {
                all_count = false;
                grants.leave_out(VariableGrant::KEY, name.as_str(), &beyond);
                grants.warnings.extend(is_enabled.then_some(beyond));
                continue;
            }
            let value = self.variables.and_then(|variables| variables.get(name.as_str()));
            let mut warn = |problem| {
                grants.warnings.extend(is_enabled.then(|| Problem::at(problem, at.origin())));
            };
            if name.looks_like_secret() {
                let message = format!(
                    "`{name}` looks like a secret, which the tool can read and pass on as long as \
                     it is granted like this"
                );
                warn(Problem::new(DiagnosticKind::SecretVariable, message));
            }
            let value = match value {
                Some(VariableValue::Text(value)) => Some(value),
                Some(VariableValue::Unusable(reason)) => {
                    warn(unusable_variable(&name, reason));
                    None
                }
                None => {
                    warn(unset_variable(&name));
                    None
                }
            };
            granted.push(VariableGrant { name, value });
        }
        if !all_count && is_enabled {
            grants.warnings.extend(replaces(VariableGrant::KEY, effective, own));
        }
        grants.set(|grants| &mut grants.variables, effective.sourced(granted));
        placeholders
    }
}

/// The names of a list that can be granted, each with its place and what it stands in.
fn names<'a, T>(
    list: At<'a, Vec<Written<T>>>,
    name: impl Fn(&'a T) -> &'a String,
    report: &mut Report,
) -> Vec<(At<'a, String>, &'a T, VariableName)> {
    let (count, most) = (list.value.len(), VariableGrant::MOST);
    if count > most {
        report.at(list, format!("{count} variables are listed, and {most} is the most"));
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for entry in list.value {
        let at = entry.at(list.file);
        let (entry, at) = (at.value, at.with(name(at.value)));
        match VariableName::new(at.value.as_str()) {
            Ok(name) if !seen.insert(name.clone()) => {
                report.at(at, listed_twice(at.value));
            }
            Ok(name) => names.push((at, entry, name)),
            Err(error) => report.at(at, error),
        }
    }
    names
}

/// A granted variable that is not set.
pub(super) fn unset_variable(name: &VariableName) -> Problem {
    let message = format!("the variable `{name}` is not set, so that the tool does not find it");
    Problem::new(DiagnosticKind::Grant(VariableGrant::KEY), message)
}

/// A granted variable with a value that no guest can be given.
pub(super) fn unusable_variable(name: &VariableName, reason: &str) -> Problem {
    let message =
        format!("the value of the variable `{name}` {reason}, so that the tool does not find it");
    Problem::new(DiagnosticKind::Grant(VariableGrant::KEY), message)
}
