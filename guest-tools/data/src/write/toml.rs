//! TOML. Strings and keys are written by `toml_writer`. Numbers keep all their digits, which a
//! writer of 64-bit floats would round.

use serde_json::{Map, Number, Value};
use toml_writer::TomlWrite as _;

use super::{Bounded, Stop};

/// The error for a root that is not an object.
pub(super) const ROOT: &str = "a document that is not an object";

pub(super) fn write(text: &mut Bounded, value: &Value) -> Result<(), Stop> {
    let Value::Object(map) = value else { return Err(Stop::unfit(ROOT)) };
    table(text, map, "", &mut Vec::new())
}

/// Writes the content below the header of `path`: first the keys with values, then the tables.
fn table(
    text: &mut Bounded,
    map: &Map<String, Value>,
    path: &str,
    keys: &mut Vec<String>,
) -> Result<(), Stop> {
    for (key, value) in map.iter().filter(|(_, value)| !has_header(value)) {
        keys.push(key.clone());
        text.key(key)?;
        text.push(" = ")?;
        inline(text, value, keys)?;
        text.push("\n")?;
        keys.pop();
    }
    for (key, value) in map.iter().filter(|(_, value)| has_header(value)) {
        let mut path = path.to_owned();
        if !path.is_empty() {
            path.push('.');
        }
        path.key(key)?;
        keys.push(key.clone());
        match value {
            Value::Object(map) => {
                header(text, &format!("[{path}]\n"))?;
                table(text, map, &path, keys)?;
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    header(text, &format!("[[{path}]]\n"))?;
                    keys.push(index.to_string());
                    if let Value::Object(map) = item {
                        table(text, map, &path, keys)?;
                    }
                    keys.pop();
                }
            }
            _ => {}
        }
        keys.pop();
    }
    Ok(())
}

fn header(text: &mut Bounded, header: &str) -> Result<(), Stop> {
    text.push(if text.text.is_empty() { "" } else { "\n" })?;
    text.push(header)
}

/// Returns true if a value is a table or an array of tables.
fn has_header(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_object),
        _ => false,
    }
}

fn inline(text: &mut Bounded, value: &Value, keys: &mut Vec<String>) -> Result<(), Stop> {
    match value {
        Value::Null => Err(Stop::Unfit { what: "null".to_owned(), keys: keys.clone() }),
        Value::Bool(value) => Ok(text.value(value)?),
        Value::String(value) => Ok(text.value(value)?),
        Value::Number(value) if is_held(value) => text.push(value.as_str()),
        Value::Number(value) => {
            let what = format!("the number {value}, which does not fit into its 64 bits");
            Err(Stop::Unfit { what, keys: keys.clone() })
        }
        Value::Array(items) => {
            text.push("[")?;
            for (index, item) in items.iter().enumerate() {
                text.push(if index == 0 { "" } else { ", " })?;
                keys.push(index.to_string());
                inline(text, item, keys)?;
                keys.pop();
            }
            text.push("]")
        }
        Value::Object(map) => {
            text.push("{")?;
            for (index, (key, value)) in map.iter().enumerate() {
                text.push(if index == 0 { " " } else { ", " })?;
                keys.push(key.clone());
                text.key(key)?;
                text.push(" = ")?;
                inline(text, value, keys)?;
                keys.pop();
            }
            text.push(if map.is_empty() { "}" } else { " }" })
        }
    }
}

/// Returns true if TOML parsers can represent a number: a 64-bit integer or a finite float.
fn is_held(number: &Number) -> bool {
    let text = number.as_str();
    match text.contains(['.', 'e', 'E']) {
        true => text.parse::<f64>().is_ok_and(f64::is_finite),
        false => text.parse::<i64>().is_ok(),
    }
}
