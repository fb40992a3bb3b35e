//! Parameters: the arguments that a local tool takes.

mod fit;
pub(crate) mod value;

use std::collections::HashSet;

use kitbag_base::text::shown;
use serde_json::Value;

use crate::config::{Parameter, ParameterType, Parameters};
use crate::format::ParameterConfig;
use crate::format::key::KeyPath;
use crate::format::span::{AnyValue, At, Part, Table, all, copied, last, merge};
use crate::layers::origin::Sourced;
use crate::read::file::SourceFile;
use crate::read::script::is_variable;
use crate::report::Report;
use crate::report::text::listed_twice;
use crate::resolve::context::Context;
use crate::resolve::parameters::fit::{Fit, identity};
use crate::resolve::parameters::value::{json, plain};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterRole {
    Argument,
    /// An argument of a script, which is a variable in it.
    Variable,
    /// A key of an object.
    Property,
    /// The elements of an array.
    Items,
    /// The answer of the tool.
    Output,
}

pub(crate) fn merged(
    context: &Context<'_>,
    path: &KeyPath<'_>,
    layers: &[At<'_, Table<ParameterConfig>>],
    role: ParameterRole,
    report: &mut Report,
) -> Parameters {
    let tables: Vec<(&SourceFile, _)> =
        layers.iter().map(|layer| (layer.file, layer.value)).collect();
    let mut entries = Vec::new();
    for parts in merge(tables) {
        let key = parts[0].key;
        let name = key.value;
        if !is_name(name) {
            let problem = format!(
                "`{}` is not the name of a parameter: it takes 1 to 64 letters, digits, `_`, \
                 `-` and `.`",
                shown(name)
            );
            report.at(key, problem);
        } else if matches!(role, ParameterRole::Argument | ParameterRole::Variable)
            && name.starts_with('_')
        {
            let problem = format!(
                "parameter `{}` starts with `_`, which is reserved for the host; rename it",
                shown(name)
            );
            report.at(key, problem);
        } else if role == ParameterRole::Variable && !is_variable(name) {
            let problem = format!(
                "`{}` cannot be a variable of a script: it takes letters, digits and `_`, does \
                 not start with a digit, and is not a keyword of Python",
                shown(name)
            );
            report.at(key, problem);
        }
        if let Some(parameter) = one(context, &path.key(name), &parts, role, report) {
            entries.push((name.to_owned(), parameter));
        }
    }
    Parameters { entries }
}

pub(crate) fn one(
    context: &Context<'_>,
    path: &KeyPath<'_>,
    parts: &[Part<'_, ParameterConfig>],
    role: ParameterRole,
    report: &mut Report,
) -> Option<Parameter> {
    let kind = copied(parts, |parameter| parameter.kind.as_ref());
    if kind.is_none() && context.invalid.covers(&path.key("type")) {
        return None;
    }
    let items = items(context, path, parts, report);
    let properties: Vec<_> = all(parts, |parameter| parameter.properties.as_ref()).collect();
    let properties = (!properties.is_empty()).then(|| {
        merged(context, &path.key("properties"), &properties, ParameterRole::Property, report)
    });
    check_keys(parts, kind.as_ref().map(|kind| kind.value), role, report);

    let mut parameter = Parameter {
        kind,
        description: copied(parts, |parameter| parameter.description.as_ref()),
        required: copied(parts, |parameter| parameter.required.as_ref())
            .unwrap_or(Sourced::default(false)),
        default: None,
        choices: None,
        items,
        properties,
    };
    // The order matters: a value of `enum` is checked against the type, and the default also
    // against `enum`.
    parameter.choices = choices(&path.key("enum"), parts, &parameter, report);
    if let Some(default) = last(parts, |parameter| parameter.default.as_ref())
        && let Some(value) = fitting(&path.key("default"), default, &Fit::new(&parameter), report)
    {
        parameter.default = Some(default.sourced(value));
    }
    Some(parameter)
}

fn items(
    context: &Context<'_>,
    path: &KeyPath<'_>,
    parts: &[Part<'_, ParameterConfig>],
    report: &mut Report,
) -> Option<Box<Parameter>> {
    let items: Vec<_> = parts
        .iter()
        .filter_map(|part| {
            let items = part.at.inner(|parameter| parameter.items.as_ref())?;
            Some(Part { key: part.key, at: items.with(items.value.as_ref()) })
        })
        .collect();
    if items.is_empty() {
        return None;
    }
    one(context, &path.key("items"), &items, ParameterRole::Items, report).map(Box::new)
}

/// Refuses keys that have no meaning for the role of the parameter.
fn check_keys(
    parts: &[Part<'_, ParameterConfig>],
    kind: Option<ParameterType>,
    role: ParameterRole,
    report: &mut Report,
) {
    let misplaced = |key, only: ParameterType| {
        let only_word = only.as_str();
        let actual = match kind {
            Some(actual) => format!("is of type `{}`", actual.as_str()),
            None => format!("has none; add `type = \"{only_word}\"`"),
        };
        (kind != Some(only))
            .then(|| format!("`{key}` needs the type `{only_word}`, but this {actual}"))
    };
    if let Some(problem) = misplaced("items", ParameterType::Array)
        && let Some(at) = last(parts, |parameter| parameter.items.as_ref())
    {
        report.at(at, problem);
    }
    if let Some(problem) = misplaced("properties", ParameterType::Object)
        && let Some(at) = last(parts, |parameter| parameter.properties.as_ref())
    {
        report.at(at, problem);
    }
    let of = match role {
        ParameterRole::Items => "the elements of an array",
        ParameterRole::Output => "the answer of a tool",
        ParameterRole::Argument | ParameterRole::Variable | ParameterRole::Property => return,
    };
    let meaningless = |key| format!("`{key}` has no meaning for {of}; remove it");
    if let Some(at) = last(parts, |parameter| parameter.required.as_ref()) {
        report.at(at, meaningless("required"));
    }
    if let Some(at) = last(parts, |parameter| parameter.default.as_ref()) {
        report.at(at, meaningless("default"));
    }
}

fn choices(
    path: &KeyPath<'_>,
    parts: &[Part<'_, ParameterConfig>],
    parameter: &Parameter,
    report: &mut Report,
) -> Option<Sourced<Vec<Value>>> {
    let list = last(parts, |parameter| parameter.choices.as_ref())?;
    if list.value.is_empty() {
        let problem = "`enum` is empty, so no value is valid; list the values, or remove it";
        report.at(list, problem);
    }
    let fit = Fit::new(parameter);
    let mut seen = HashSet::new();
    let mut choices = Vec::with_capacity(list.value.len());
    for (index, choice) in list.value.iter().enumerate() {
        let at = choice.at(list.file);
        let Some(value) = fitting(&path.index(index), at, &fit, report) else { continue };
        if !seen.insert(identity(&value)) {
            report.at(at, listed_twice(&plain(&value)));
        }
        choices.push(value);
    }
    Some(list.sourced(choices))
}

/// Returns the value as JSON, if it fits the parameter.
fn fitting(
    path: &KeyPath<'_>,
    at: At<'_, AnyValue>,
    fit: &Fit<'_>,
    report: &mut Report,
) -> Option<Value> {
    let value = json(&at.value.0).map_err(|problem| report.at(at, problem)).ok()?;
    fit.check(path, &value).map_err(|problem| report.at(at, problem)).ok()?;
    Some(value)
}

/// Returns whether a string can be the name of a parameter. All large model interfaces accept this
/// form; they refuse every tool if one name violates it.
fn is_name(name: &str) -> bool {
    const MAX_BYTES: usize = 64;
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=MAX_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}
