//! Values of a script from JSON, and as JSON.

use std::fmt;

use kitbag_sdk::serde_json;
use rustpython_vm::builtins::{PyBaseExceptionRef, PyDict, PyFloat, PyInt, PyList, PyStr, PyTuple};
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The deepest nesting of a value that becomes JSON.
const DEPTH: usize = 200;

/// The size from which Python itself writes an integer, or refuses to: 4,300 digits.
const LARGE_BITS: u64 = 14_000;

/// The reason why a value is not JSON.
pub(crate) enum NotJson {
    /// It is nested too deep.
    Deep,
    /// It contains an object of this type.
    Type(String),
    /// It contains an object that raised an exception.
    Raised(PyBaseExceptionRef),
}

/// Reads the argument `inputs`.
pub(crate) fn inputs(arguments: &str, vm: &VirtualMachine) -> PyResult<PyObjectRef> {
    let mut reader = serde_json::Deserializer::from_str(arguments);
    let read = Inputs(vm).deserialize(&mut reader);
    read.map_err(|error| vm.new_value_error(error.to_string()))
}

/// Reads JSON that a tool has answered. `None` if it is not JSON, or nested too deep.
pub(crate) fn from_json(text: &str, vm: &VirtualMachine) -> Option<PyObjectRef> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Value(vm).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

/// Writes a value as JSON.
///
/// # Errors
///
/// If the value, or a value in it, is not `None`, a boolean, a finite number, a string, a list, a
/// tuple, or a dictionary with string keys.
pub(crate) fn to_json(value: &PyObject, vm: &VirtualMachine) -> Result<String, NotJson> {
    let mut json = String::new();
    write(value, DEPTH, &mut json, vm)?;
    Ok(json)
}

/// Returns a string as JSON.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn write(
    value: &PyObject,
    depth: usize,
    json: &mut String,
    vm: &VirtualMachine,
) -> Result<(), NotJson> {
    let inside = depth.checked_sub(1).ok_or(NotJson::Deep)?;
    let other = || NotJson::Type(value.class().name().to_string());
    if vm.is_none(value) {
        json.push_str("null");
    } else if value.is(&vm.ctx.true_value) {
        json.push_str("true");
    } else if value.is(&vm.ctx.false_value) {
        json.push_str("false");
    } else if let Some(text) = value.downcast_ref::<PyStr>() {
        json.push_str(&quote(text.to_str().ok_or_else(other)?));
    } else if let Some(number) = value.downcast_ref::<PyInt>() {
        match number.as_bigint() {
            number if number.bits() < LARGE_BITS => json.push_str(&number.to_string()),
            _ => {
                let text = value.str(vm).map_err(NotJson::Raised)?;
                json.push_str(&text.to_string_lossy());
            }
        }
    } else if let Some(number) = value.downcast_ref::<PyFloat>() {
        let number = number.to_f64();
        if !number.is_finite() {
            return Err(other());
        }
        json.push_str(&serde_json::to_string(&number).unwrap_or_default());
    } else if let Some(list) = value.downcast_ref::<PyList>() {
        let items = list.borrow_vec().to_vec();
        write_items(&items, inside, json, vm)?;
    } else if let Some(tuple) = value.downcast_ref::<PyTuple>() {
        write_items(tuple.as_slice(), inside, json, vm)?;
    } else if let Some(dictionary) = value.downcast_ref::<PyDict>() {
        json.push('{');
        let items = dictionary.to_owned();
        for (at, (key, item)) in items.into_iter().enumerate() {
            let key = key.downcast_ref::<PyStr>().and_then(|key| key.to_str()).ok_or_else(other)?;
            if at > 0 {
                json.push(',');
            }
            json.push_str(&quote(key));
            json.push(':');
            write(&item, inside, json, vm)?;
        }
        json.push('}');
    } else {
        return Err(other());
    }
    Ok(())
}

fn write_items(
    items: &[PyObjectRef],
    depth: usize,
    json: &mut String,
    vm: &VirtualMachine,
) -> Result<(), NotJson> {
    json.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        write(item, depth, json, vm)?;
    }
    json.push(']');
    Ok(())
}

/// Reads the value of the key `inputs`; an empty dictionary without one.
struct Inputs<'a>(&'a VirtualMachine);

impl<'de> DeserializeSeed<'de> for Inputs<'_> {
    type Value = PyObjectRef;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PyObjectRef, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Inputs<'_> {
    type Value = PyObjectRef;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PyObjectRef, A::Error> {
        let mut inputs = None;
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "inputs" => inputs = Some(map.next_value_seed(Value(self.0))?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(inputs.unwrap_or_else(|| self.0.ctx.new_dict().into()))
    }
}

/// Reads any value as an object of the interpreter.
#[derive(Clone, Copy)]
struct Value<'a>(&'a VirtualMachine);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = PyObjectRef;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PyObjectRef, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = PyObjectRef;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<PyObjectRef, E> {
        Ok(self.0.ctx.none())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<PyObjectRef, E> {
        Ok(self.0.ctx.new_bool(value).into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<PyObjectRef, E> {
        Ok(self.0.ctx.new_int(value).into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<PyObjectRef, E> {
        Ok(self.0.ctx.new_int(value).into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<PyObjectRef, E> {
        Ok(self.0.ctx.new_float(value).into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<PyObjectRef, E> {
        Ok(self.0.ctx.new_str(value).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PyObjectRef, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(self.0.ctx.new_list(items).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PyObjectRef, A::Error> {
        let dictionary = self.0.ctx.new_dict();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self)?;
            dictionary
                .set_item(&*key, value, self.0)
                .map_err(|_| A::Error::custom("a key of an object cannot be stored"))?;
        }
        Ok(dictionary.into())
    }
}
