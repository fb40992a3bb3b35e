//! Parameters: the arguments that a local tool takes.

use std::collections::HashSet;

use serde_json::Value;

use super::fit::{Fit, Misfit, identity};
use super::resolver::Resolver;
use super::value::{json, plain};
use crate::config::{Parameter, ParameterType, Parameters};
use crate::file::SourceFile;
use crate::format::ParameterConfig;
use crate::key::KeyPath;
use crate::origin::Sourced;
use crate::problem::Problem;
use crate::script::is_variable;
use crate::written::{AnyValue, At, Part, Table, all, copied, last, merge};

/// What a definition is that of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An argument of the tool.
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

impl Resolver<'_> {
    /// What the layers say, the weakest first.
    pub(super) fn parameters(
        &mut self,
        path: &KeyPath<'_>,
        layers: &[At<'_, Table<ParameterConfig>>],
        place: Place,
    ) -> Parameters {
        let tables: Vec<(&SourceFile, _)> =
            layers.iter().map(|layer| (layer.file, layer.value)).collect();
        let mut entries = Vec::new();
        for parts in merge(tables) {
            let key = parts[0].key;
            let name = key.value;
            if !is_name(name) {
                self.report.at(key, Problem::ParameterName { name: name.to_owned() });
            } else if matches!(place, Place::Argument | Place::Variable) && name.starts_with('_') {
                self.report.at(key, Problem::ReservedParameter { name: name.to_owned() });
            } else if place == Place::Variable && !is_variable(name) {
                self.report.at(key, Problem::VariableName { name: name.to_owned() });
            }
            if let Some(parameter) = self.parameter(&path.key(name), &parts, place) {
                entries.push((name.to_owned(), parameter));
            }
        }
        Parameters { entries }
    }

    pub(super) fn parameter(
        &mut self,
        path: &KeyPath<'_>,
        parts: &[Part<'_, ParameterConfig>],
        place: Place,
    ) -> Option<Parameter> {
        let kind = copied(parts, |parameter| parameter.kind.as_ref());
        if kind.is_none() && self.invalid.covers(&path.key("type")) {
            return None;
        }
        let items = self.items(path, parts);
        let properties: Vec<_> = all(parts, |parameter| parameter.properties.as_ref()).collect();
        let properties = (!properties.is_empty())
            .then(|| self.parameters(&path.key("properties"), &properties, Place::Property));
        self.check_keys(parts, kind.as_ref().map(|kind| kind.value), place);

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
        // In this order: a value of `enum` is measured against the type, and
        // the default against `enum` too.
        parameter.choices = self.choices(&path.key("enum"), parts, &parameter);
        if let Some(default) = last(parts, |parameter| parameter.default.as_ref())
            && let Some(value) = self.fitting(&path.key("default"), default, &Fit::new(&parameter))
        {
            parameter.default = Some(default.sourced(value));
        }
        Some(parameter)
    }

    fn items(
        &mut self,
        path: &KeyPath<'_>,
        parts: &[Part<'_, ParameterConfig>],
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
        self.parameter(&path.key("items"), &items, Place::Items).map(Box::new)
    }

    /// Refuses keys that mean nothing where they stand.
    fn check_keys(
        &mut self,
        parts: &[Part<'_, ParameterConfig>],
        kind: Option<ParameterType>,
        place: Place,
    ) {
        let misplaced = |key, only: ParameterType| {
            (kind != Some(only)).then_some(Problem::MisplacedKey {
                key,
                only: only.as_str(),
                actual: kind.map(ParameterType::as_str),
            })
        };
        if let Some(problem) = misplaced("items", ParameterType::Array)
            && let Some(at) = last(parts, |parameter| parameter.items.as_ref())
        {
            self.report.at(at, problem);
        }
        if let Some(problem) = misplaced("properties", ParameterType::Object)
            && let Some(at) = last(parts, |parameter| parameter.properties.as_ref())
        {
            self.report.at(at, problem);
        }
        let meaningless: fn(&'static str) -> Problem = match place {
            Place::Items => |key| Problem::MeaninglessInItems { key },
            Place::Output => |key| Problem::MeaninglessInOutput { key },
            Place::Argument | Place::Variable | Place::Property => return,
        };
        if let Some(at) = last(parts, |parameter| parameter.required.as_ref()) {
            self.report.at(at, meaningless("required"));
        }
        if let Some(at) = last(parts, |parameter| parameter.default.as_ref()) {
            self.report.at(at, meaningless("default"));
        }
    }

    fn choices(
        &mut self,
        path: &KeyPath<'_>,
        parts: &[Part<'_, ParameterConfig>],
        parameter: &Parameter,
    ) -> Option<Sourced<Vec<Value>>> {
        let list = last(parts, |parameter| parameter.choices.as_ref())?;
        if list.value.is_empty() {
            self.report.at(list, Problem::EmptyEnum);
        }
        let fit = Fit::new(parameter);
        let mut seen = HashSet::new();
        let mut choices = Vec::with_capacity(list.value.len());
        for (index, choice) in list.value.iter().enumerate() {
            let at = choice.at(list.file);
            let Some(value) = self.fitting(&path.index(index), at, &fit) else { continue };
            if !seen.insert(identity(&value)) {
                self.report.at(at, Problem::DuplicateChoice { value: plain(&value) });
            }
            choices.push(value);
        }
        Some(list.sourced(choices))
    }

    /// The value as JSON, where it fits the parameter.
    fn fitting(
        &mut self,
        path: &KeyPath<'_>,
        at: At<'_, AnyValue>,
        fit: &Fit<'_>,
    ) -> Option<Value> {
        let value = json(&at.value.0).map_err(|problem| self.report.at(at, problem)).ok()?;
        match fit.check(path, &value) {
            Ok(()) => Some(value),
            Err(Misfit { problem, hint }) => {
                self.report.at_with(at, problem, hint);
                None
            }
        }
    }
}

/// Whether a text can be the name of a parameter. It is the form that all large
/// model interfaces take; one name outside it makes them refuse every tool.
fn is_name(name: &str) -> bool {
    const MAX_BYTES: usize = 64;
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=MAX_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}
