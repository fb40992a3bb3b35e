//! Checks that a value fits the definition of a parameter.

use std::collections::{HashMap, HashSet};

use kitbag_base::text::{alternatives, nearest};
use serde_json::{Map, Value};

use crate::config::{Parameter, ParameterType, Parameters};
use crate::format::key::KeyPath;
use crate::report::Problem;
use crate::report::text::{did_you_mean, missing_key, unknown_key, unknown_value, wrong_type};
use crate::resolve::parameters::value::{described, plain};

/// A definition, prepared so that checking is fast for values of any size.
pub(crate) struct Fit<'a> {
    parameter: &'a Parameter,
    choices: Option<HashSet<String>>,
    items: Option<Box<Fit<'a>>>,
    properties: Option<HashMap<&'a str, Fit<'a>>>,
}

impl<'a> Fit<'a> {
    pub(crate) fn new(parameter: &'a Parameter) -> Self {
        let properties = |properties: &'a Parameters| {
            properties
                .entries
                .iter()
                .map(|(name, property)| (name.as_str(), Self::new(property)))
                .collect()
        };
        Self {
            parameter,
            choices: parameter
                .choices
                .as_ref()
                .map(|list| list.value.iter().map(identity).collect()),
            items: parameter.items.as_ref().map(|items| Box::new(Self::new(items))),
            properties: parameter.properties.as_ref().map(properties),
        }
    }

    /// Checks a value; `path` is its name in the message.
    pub(crate) fn check(&self, path: &KeyPath<'_>, value: &Value) -> Result<(), Problem> {
        let Some(kind) = &self.parameter.kind else { return self.check_choice(path, value) };
        let expected = match (kind.value, value) {
            (ParameterType::Array, Value::Array(elements)) => {
                self.check_elements(path, elements)?;
                None
            }
            (ParameterType::Object, Value::Object(object)) => {
                self.check_keys(path, object)?;
                None
            }
            (ParameterType::Integer, Value::Number(number)) if !number.is_f64() => None,
            (ParameterType::String, Value::String(_))
            | (ParameterType::Number, Value::Number(_))
            | (ParameterType::Boolean, Value::Bool(_)) => None,
            (ParameterType::String, _) => Some("a string"),
            (ParameterType::Number, _) => Some("a number"),
            (ParameterType::Integer, _) => Some("an integer"),
            (ParameterType::Boolean, _) => Some("`true` or `false`"),
            (ParameterType::Array, _) => Some("an array"),
            (ParameterType::Object, _) => Some("a table"),
        };
        if let Some(expected) = expected {
            return Err(wrong_type(path, expected, &described(value)).into());
        }
        self.check_choice(path, value)
    }

    fn check_elements(&self, path: &KeyPath<'_>, elements: &[Value]) -> Result<(), Problem> {
        let Some(items) = &self.items else { return Ok(()) };
        elements
            .iter()
            .enumerate()
            .try_for_each(|(index, element)| items.check(&path.index(index), element))
    }

    fn check_keys(&self, path: &KeyPath<'_>, object: &Map<String, Value>) -> Result<(), Problem> {
        let Some(properties) = &self.properties else { return Ok(()) };
        for (key, value) in object {
            match properties.get(key.as_str()) {
                Some(property) => property.check(&path.key(key), value)?,
                None => {
                    let hint = did_you_mean(nearest(key, properties.keys().copied()));
                    return Err(Problem::from(unknown_key(key, &path.to_string())).hint(hint));
                }
            }
        }
        let defined = self.parameter.properties.iter().flat_map(|properties| &properties.entries);
        let is_missing = |(name, property): &&(String, Parameter)| {
            property.required.value && !object.contains_key(name)
        };
        match defined.into_iter().find(is_missing) {
            None => Ok(()),
            Some((name, _)) => Err(missing_key(name, &path.to_string()).into()),
        }
    }

    fn check_choice(&self, path: &KeyPath<'_>, value: &Value) -> Result<(), Problem> {
        let (Some(set), Some(list)) = (&self.choices, &self.parameter.choices) else {
            return Ok(());
        };
        if set.contains(&identity(value)) {
            return Ok(());
        }
        let words: Vec<_> = list.value.iter().map(plain).collect();
        let found = plain(value);
        let hint = did_you_mean(nearest(&found, words.iter().map(String::as_str)));
        let problem = unknown_value(path, &alternatives(&words), &found);
        Err(Problem::from(problem).hint(hint))
    }
}

/// Returns a string that is equal for values that JSON Schema considers equal, such as `1` and
/// `1.0`.
pub(crate) fn identity(value: &Value) -> String {
    match value {
        // Beyond 2^53, a float represents several integers.
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                (float as i64).to_string()
            }
            _ => number.to_string(),
        },
        value => value.to_string(),
    }
}
