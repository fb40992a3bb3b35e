//! Grants of environment variables.

use std::collections::HashSet;
use std::sync::Arc;

use kitbag_policy::{Grants, SecretName, VariableGrant, VariableName};

use super::beyond::layered;
use super::call_form::{CallForm, CallTarget};
use super::kind::{ConfigKind, Merge, Placeholder};
use crate::config::ConfiguredGrants;
use crate::format::span::{At, Written};
use crate::format::{CeilingGrantsConfig, VariableConfig};
use crate::read::sources::VariableValue;
use crate::report::text::listed_twice;
use crate::report::{DiagnosticKind, Problem, Report};
use crate::resolve::context::Context;

pub(super) const KIND: ConfigKind = ConfigKind {
    key: VariableGrant::KEY,
    merge: granted,
    ceiling: Some(ceiling),
    call: Some(CallForm { read: typed, add }),
};

fn ceiling(own: At<'_, CeilingGrantsConfig>, ceiling: &mut ConfiguredGrants, report: &mut Report) {
    let Some(at) = own.inner(|grants| grants.env.as_ref()) else { return };
    let names = names(at, |name| name, report).into_iter();
    let variables = names.map(|(_, _, name)| VariableGrant { name, value: None }).collect();
    ceiling.set(|grants| &mut grants.variables, at.sourced(variables));
}

/// Grants the variables that a tool may read, each with its value, and finds the variables that hold
/// the placeholder of a secret. Entries of a workspace beyond the ceiling and the user's own grants are
/// omitted.
fn granted<'a>(merge: &mut Merge<'a, '_>, report: &mut Report) {
    let name = |variable: &'a VariableConfig| &variable.name;
    let layers = merge.layers(|grants| grants.env.as_ref());
    let mut placeholders = Vec::new();
    let mut entries = merge.entries(VariableGrant::KEY);
    let context = entries.context;
    let layers = layered(layers, entries.grantee.code, |weaker| names(weaker, name, report));
    let Some(layers) = layers else { return };
    let own = layers.own.as_ref().map_or(&[][..], |(own, _)| own.value);
    let mut granted = Vec::new();
    for (at, entry, name) in names(layers.effective, name, report) {
        let is_own = own.iter().any(|own| own.value == *entry);
        if let Some(secret) = &entry.secret {
            match SecretName::new(secret.as_str()) {
                Ok(secret) => {
                    placeholders.push((at, Placeholder { variable: name, secret, is_own }));
                }
                Err(error) => report.at(at, error),
            }
            continue;
        }
        let ceiling = &context.workspace_ceiling.value.variables;
        let is_within = is_own || ceiling.iter().any(|variable| variable.name == name);
        let one = vec![VariableGrant { name: name.clone(), value: None }];
        if !entries.takes_effect(at, is_within, Some(name.as_str()), &one) {
            continue;
        }
        if name.looks_like_secret() {
            let message = format!(
                "`{name}` looks like a secret; with this grant the tool can read it and pass it on"
            );
            let problem = Problem::new(DiagnosticKind::SecretVariable, message);
            entries.warn(problem.at(at.origin()));
        }
        let value =
            value_of(&name, context).map_err(|problem| entries.warn(problem.at(at.origin()))).ok();
        granted.push(VariableGrant { name, value });
    }
    entries.finish(&layers);
    let granted = layers.effective.sourced(granted);
    entries.grants.set(|grants| &mut grants.variables, granted);
    merge.placeholders = placeholders;
}

/// Reads a name from the command line.
fn typed(text: &str) -> Result<Grants, Problem> {
    let variables = vec![VariableGrant { name: VariableName::new(text)?, value: None }];
    Ok(Grants { variables, ..Grants::default() })
}

fn add(mut one: Grants, target: CallTarget<'_>) -> Result<Grants, Problem> {
    let variables = &mut target.grants.value_mut().variables;
    for grant in &mut one.variables {
        grant.value = Some(value_of(&grant.name, target.context)?);
        variables.retain(|variable| variable.name != grant.name);
        variables.push(grant.clone());
    }
    Ok(one)
}

/// Returns the value of a variable of the user's environment.
fn value_of(name: &VariableName, context: &Context<'_>) -> Result<Arc<str>, Problem> {
    let value = context.variables.and_then(|variables| variables.get(name.as_str()));
    let message = match value {
        Some(VariableValue::Text(value)) => return Ok(value),
        Some(VariableValue::Unusable(reason)) => {
            format!("the value of the variable `{name}` {reason}, so the tool does not receive it")
        }
        None => format!("the variable `{name}` is not set, so the tool does not receive it"),
    };
    Err(Problem::new(DiagnosticKind::Grant(VariableGrant::KEY), message))
}

/// Returns the valid names of a list, each with its place and its entry.
fn names<'a, T>(
    list: At<'a, Vec<Written<T>>>,
    name: impl Fn(&'a T) -> &'a String,
    report: &mut Report,
) -> Vec<(At<'a, String>, &'a T, VariableName)> {
    let (count, most) = (list.value.len(), VariableGrant::MOST);
    if count > most {
        report.at(list, format!("{count} variables are listed; the limit is {most}"));
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
