//! Values of any type: conversion from TOML to JSON, and their description.

use crate::report::Problem;
use kitbag_base::text::shown;
use serde_json::{Map, Number, Value};

/// Converts a TOML value to JSON. Dates become strings, as in RFC 3339.
pub(crate) fn json(value: &toml::Value) -> Result<Value, Problem> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text.clone()),
        toml::Value::Integer(integer) => Value::from(*integer),
        toml::Value::Float(float) => {
            let not_json = || {
                let number = float.to_string().to_lowercase();
                format!("`{number}` cannot be passed to a tool: JSON has no such number")
            };
            Value::Number(Number::from_f64(*float).ok_or_else(not_json)?)
        }
        toml::Value::Boolean(value) => Value::Bool(*value),
        toml::Value::Datetime(date) => Value::String(date.to_string()),
        toml::Value::Array(values) => {
            Value::Array(values.iter().map(json).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => {
            let entry = |(key, value): (&String, &toml::Value)| Ok((key.clone(), json(value)?));
            Value::Object(table.iter().map(entry).collect::<Result<Map<_, _>, Problem>>()?)
        }
    })
}

pub(crate) fn described(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Number(number) if number.is_f64() => format!("the number `{number}`"),
        Value::Number(number) => format!("the integer `{number}`"),
        Value::String(text) => format!("the string `{}`", shown(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    }
}

/// Formats a value for a message: a string without its quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
