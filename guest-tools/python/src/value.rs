//! Values of a script from JSON, and as text.

use std::fmt;

use kitbag_sdk::serde_json;
use monty_types::{DictPairs, MontyObject};
use num_bigint::BigInt;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The deepest nesting of a value that is shown.
const DEPTH: usize = 200;

/// The variables that a script begins with, in the order of the arguments.
#[derive(Debug, Default)]
pub(crate) struct Inputs(pub(crate) Vec<(String, MontyObject)>);

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Variables;

        impl<'de> Visitor<'de> for Variables {
            type Value = Inputs;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object whose keys are names of variables")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Inputs, A::Error> {
                let mut inputs = Vec::new();
                while let Some((name, Input(value))) = map.next_entry()? {
                    inputs.push((name, value));
                }
                Ok(Inputs(inputs))
            }
        }

        deserializer.deserialize_map(Variables)
    }
}

/// One value.
struct Input(MontyObject);

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;

        impl<'de> Visitor<'de> for Value {
            type Value = Input;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON value")
            }

            fn visit_unit<E: Error>(self) -> Result<Input, E> {
                Ok(Input(MontyObject::None))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Input, E> {
                Ok(Input(MontyObject::Bool(value)))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Input, E> {
                Ok(Input(MontyObject::Int(value)))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Input, E> {
                Ok(Input(match i64::try_from(value) {
                    Ok(value) => MontyObject::Int(value),
                    Err(_) => MontyObject::BigInt(BigInt::from(value)),
                }))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Input, E> {
                Ok(Input(MontyObject::Float(value)))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Input, E> {
                Ok(Input(MontyObject::String(value.to_owned())))
            }

            fn visit_string<E: Error>(self, value: String) -> Result<Input, E> {
                Ok(Input(MontyObject::String(value)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Input, A::Error> {
                let mut items = Vec::new();
                while let Some(Input(item)) = list.next_element()? {
                    items.push(item);
                }
                Ok(Input(MontyObject::List(items)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Input, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, Input(value))) = map.next_entry()? {
                    pairs.push((MontyObject::String(key), value));
                }
                Ok(Input(MontyObject::Dict(DictPairs::from(pairs))))
            }
        }

        deserializer.deserialize_any(Value)
    }
}

/// Reads JSON that a tool has answered.
///
/// # Errors
///
/// If it is not JSON, or too deep.
pub(crate) fn from_json(text: &str) -> Result<MontyObject, serde_json::Error> {
    serde_json::from_str::<Input>(text).map(|Input(value)| value)
}

/// Adds an argument of a tool to a text of JSON, or says what it is instead of data. A path is
/// text.
pub(crate) fn write_argument(value: &MontyObject, json: &mut String) -> Result<(), String> {
    if let MontyObject::Path(path) = value {
        json.push_str(&quote(path));
        return Ok(());
    }
    write(value, DEPTH, json).map_err(|problem| match problem {
        NoData::Deep => format!("nested deeper than {DEPTH}"),
        NoData::Other => format!("a {} that is no data", value.type_name()),
    })
}

/// A value as JSON where all of it is data (`None`, truth values, finite numbers, text,
/// lists, tuples, and dictionaries whose keys are text), else as Python's `repr()` has it.
pub(crate) fn to_text(value: &MontyObject) -> String {
    let mut json = String::new();
    match write(value, DEPTH, &mut json) {
        Ok(()) => json,
        Err(NoData::Deep) => {
            format!("a value of {}s in each other, deeper than {DEPTH}", value.type_name())
        }
        Err(NoData::Other) => value.py_repr(),
    }
}

/// The reason why a value is not JSON.
enum NoData {
    /// It is nested too deep.
    Deep,
    /// It is something else than data.
    Other,
}

fn write(value: &MontyObject, depth: usize, json: &mut String) -> Result<(), NoData> {
    let inside = depth.checked_sub(1).ok_or(NoData::Deep)?;
    match value {
        MontyObject::None => json.push_str("null"),
        MontyObject::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
        MontyObject::Int(value) => json.push_str(&value.to_string()),
        MontyObject::BigInt(value) => json.push_str(&value.to_string()),
        MontyObject::Float(value) if value.is_finite() => json.push_str(&quote(value)),
        MontyObject::String(value) => json.push_str(&quote(value)),
        MontyObject::List(items) | MontyObject::Tuple(items) => {
            json.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    json.push(',');
                }
                write(item, inside, json)?;
            }
            json.push(']');
        }
        MontyObject::Dict(pairs) => {
            json.push('{');
            for (at, (key, item)) in pairs.iter().enumerate() {
                let MontyObject::String(key) = key else { return Err(NoData::Other) };
                if at > 0 {
                    json.push(',');
                }
                json.push_str(&quote(key));
                json.push(':');
                write(item, inside, json)?;
            }
            json.push('}');
        }
        _ => return Err(NoData::Other),
    }
    Ok(())
}

/// A text or a finite number as JSON.
pub(crate) fn quote<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
