//! JSON and the values of WIT types; the forms are those of the [schemas](super::schema).

use std::io::{self, Write};

use kitbag_base::json::pointer;
use kitbag_base::text::shown;
use serde_json::{Map, Value};
use wasmtime::component::Val;

use super::schema::{INFINITY, NAN, NEGATIVE_INFINITY};
use super::types::{IntegerType, Named, WitType};

/// The largest whole number up to which a float has no gaps.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A JSON value that does not match its type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// The JSON pointer of the value.
    pub(super) pointer: String,
    pub(super) message: String,
}

/// Converts arguments to the values of parameters, by name. `bytes` is the memory that the values
/// may take.
///
/// # Errors
///
/// [`Mismatch`] has the first value that does not match.
pub(super) fn arguments(
    parameters: &[(String, WitType)],
    arguments: &Map<String, Value>,
    bytes: usize,
) -> Result<Vec<Val>, Mismatch> {
    let mut reader = Reader { at: String::new(), bytes_left: bytes };
    parameters
        .iter()
        .map(|(name, ty)| reader.field(name, ty, arguments))
        .collect::<Result<_, _>>()
        .map_err(|message| Mismatch { pointer: reader.at, message })
}

/// Converts one JSON value.
#[cfg(test)]
pub(super) fn read(ty: &WitType, value: &Value, bytes: usize) -> Result<Val, Mismatch> {
    let mut reader = Reader { at: String::new(), bytes_left: bytes };
    reader.read(ty, value).map_err(|message| Mismatch { pointer: reader.at, message })
}

struct Reader {
    /// The JSON pointer of the current value. Not shortened on an error.
    at: String,
    bytes_left: usize,
}

impl Reader {
    fn read(&mut self, ty: &WitType, value: &Value) -> Result<Val, String> {
        self.take(size_of::<Val>())?;
        Ok(match (ty, value) {
            (WitType::Bool, Value::Bool(value)) => Val::Bool(*value),
            (WitType::Integer(integer), Value::Number(number)) => read_integer(*integer, number)?,
            (WitType::Float32, value) => Val::Float32(narrow(read_float(value)?)?),
            (WitType::Float64, value) => Val::Float64(read_float(value)?),
            (WitType::Char, Value::String(text)) => Val::Char(read_char(text)?),
            (WitType::String, Value::String(text)) => Val::String(self.text(text)?),
            (WitType::List(ty), Value::Array(elements)) => {
                let elements = elements.iter().enumerate();
                Val::List(
                    elements.map(|(at, it)| self.element(at, ty, it)).collect::<Result<_, _>>()?,
                )
            }
            (WitType::Tuple(types), Value::Array(elements)) => {
                if elements.len() != types.len() {
                    return Err(format!(
                        "must have {} elements, but has {}",
                        types.len(),
                        elements.len()
                    ));
                }
                let elements = types.iter().zip(elements).enumerate();
                let value = |(at, (ty, it))| self.element(at, ty, it);
                Val::Tuple(elements.map(value).collect::<Result<_, _>>()?)
            }
            (WitType::Record(fields), Value::Object(object)) => {
                let known = fields.iter().filter(|(name, _)| object.contains_key(name)).count();
                if known < object.len() {
                    let mut keys = object.keys();
                    let key = keys.find(|key| !fields.iter().any(|(name, _)| name == *key));
                    let key = key.map_or("", |key| key);
                    return Err(format!("must not have the key `{}`", shown(key)));
                }
                let field = |(name, ty): &(String, WitType)| {
                    Ok((self.text(name)?, self.field(name, ty, object)?))
                };
                Val::Record(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
            (WitType::Variant(cases), Value::Object(object)) => self.variant(cases, object)?,
            (WitType::Enum(names), Value::String(name)) => match names.find(name) {
                Some(_) => Val::Enum(self.text(name)?),
                None => return Err(not_one_of(name, names)),
            },
            (WitType::Option(_), Value::Null) => Val::Option(None),
            (WitType::Option(ty), value) => {
                let some = match ty.is_nullable() {
                    false => self.read(ty, value)?,
                    true => {
                        self.only(&["some"], value, |reader, _, value| reader.read(ty, value))?
                    }
                };
                Val::Option(Some(Box::new(some)))
            }
            (WitType::Result { ok, err }, value) => {
                self.only(&["ok", "err"], value, |reader, side, value| {
                    let mut payload = |ty: &Option<Box<WitType>>| match (ty, value) {
                        (None, Value::Null) => Ok(None),
                        (None, other) => Err(misfit("null", other)),
                        (Some(ty), value) => Ok(Some(Box::new(reader.read(ty, value)?))),
                    };
                    Ok(Val::Result(match side {
                        0 => Ok(payload(ok)?),
                        _ => Err(payload(err)?),
                    }))
                })?
            }
            (WitType::Flags(names), Value::Array(given)) => self.flags(names, given)?,
            (ty, value) => return Err(misfit(description(ty), value)),
        })
    }

    /// Reads the value of a key that may be missing if its type is optional.
    fn field(
        &mut self,
        name: &str,
        ty: &WitType,
        object: &Map<String, Value>,
    ) -> Result<Val, String> {
        match object.get(name) {
            Some(value) => self.below(&pointer(name), |reader| reader.read(ty, value)),
            None if ty.is_nullable() => {
                self.take(size_of::<Val>())?;
                Ok(Val::Option(None))
            }
            None => Err(format!("must have the key `{}`", shown(name))),
        }
    }

    fn element(&mut self, at: usize, ty: &WitType, value: &Value) -> Result<Val, String> {
        self.below(&format!("/{at}"), |reader| reader.read(ty, value))
    }

    fn below<T>(
        &mut self,
        part: &str,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        let within = self.at.len();
        self.at.push_str(part);
        let value = read(self)?;
        self.at.truncate(within);
        Ok(value)
    }

    /// Reads an object whose only key is one of `keys`; `read` gets the position of the key.
    fn only(
        &mut self,
        keys: &[&str],
        value: &Value,
        read: impl FnOnce(&mut Self, usize, &Value) -> Result<Val, String>,
    ) -> Result<Val, String> {
        let expected = || {
            let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
            format!("an object with the key {}", keys.join(" or "))
        };
        let Value::Object(object) = value else { return Err(misfit(&expected(), value)) };
        let found = object.iter().next().filter(|_| object.len() == 1);
        let found = found.and_then(|(key, value)| {
            let position = keys.iter().position(|own| own == key)?;
            Some((key, position, value))
        });
        match found {
            Some((key, position, value)) => {
                self.below(&pointer(key), |reader| read(reader, position, value))
            }
            None => Err(format!("must be {}", expected())),
        }
    }

    fn variant(
        &mut self,
        cases: &Named<Option<WitType>>,
        object: &Map<String, Value>,
    ) -> Result<Val, String> {
        let tag = object.get("tag").and_then(Value::as_str);
        let tag = tag.ok_or("must have the key `tag` with the name of a case")?;
        let Some((_, payload)) = cases.find(tag) else {
            return self.below("/tag", |_| Err(not_one_of(tag, cases)));
        };
        if let Some(key) = object.keys().find(|key| *key != "tag" && *key != "val") {
            return Err(format!("must not have the key `{}`", shown(key)));
        }
        let name = self.text(tag)?;
        Ok(Val::Variant(
            name,
            match (payload, object.get("val")) {
                (Some(ty), Some(value)) => {
                    Some(Box::new(self.below("/val", |reader| reader.read(ty, value))?))
                }
                (Some(ty), None) if ty.is_nullable() => {
                    self.take(size_of::<Val>())?;
                    Some(Box::new(Val::Option(None)))
                }
                (Some(_), None) => {
                    return Err(format!("must have the key `val` for the case `{}`", shown(tag)));
                }
                (None, None | Some(Value::Null)) => None,
                (None, Some(_)) => {
                    return Err(format!(
                        "must not have the key `val` for the case `{}`",
                        shown(tag)
                    ));
                }
            },
        ))
    }

    /// Reads the names of flags, in any order.
    fn flags(&mut self, names: &Named<()>, given: &[Value]) -> Result<Val, String> {
        let mut is_set = vec![false; names.len()];
        for (at, value) in given.iter().enumerate() {
            self.below(&format!("/{at}"), |_| {
                let Value::String(name) = value else { return Err(misfit("a string", value)) };
                let (position, ()) = names.find(name).ok_or_else(|| not_one_of(name, names))?;
                match std::mem::replace(&mut is_set[position], true) {
                    true => Err(format!("repeats `{}`", shown(name))),
                    false => Ok(()),
                }
            })?;
        }
        let set = names.iter().zip(is_set).filter(|(_, is_set)| *is_set);
        Ok(Val::Flags(set.map(|((name, ()), _)| self.text(name)).collect::<Result<_, _>>()?))
    }

    fn text(&mut self, text: &str) -> Result<String, String> {
        self.take(size_of::<String>() + text.len())?;
        Ok(text.to_owned())
    }

    /// A type may need much more memory than its JSON: each `{}` in a list can be a record with
    /// thousands of optional fields.
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or("has a value of too many parts for one call")?;
        Ok(())
    }
}

fn read_integer(integer: IntegerType, number: &serde_json::Number) -> Result<Val, String> {
    let (least, most) = integer.range();
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let of_float = || {
        let float = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= EXACT)?;
        // Exact, since the float is whole and within the range without gaps.
        Some(float as i128)
    };
    let value = whole.or_else(of_float).filter(|value| (least..=most).contains(value));
    let value = value.ok_or_else(|| {
        format!("must be a whole number from {least} to {most}, but is `{}`", number)
    })?;
    // The range was checked.
    Ok(match integer {
        IntegerType::S8 => Val::S8(value as i8),
        IntegerType::U8 => Val::U8(value as u8),
        IntegerType::S16 => Val::S16(value as i16),
        IntegerType::U16 => Val::U16(value as u16),
        IntegerType::S32 => Val::S32(value as i32),
        IntegerType::U32 => Val::U32(value as u32),
        IntegerType::S64 => Val::S64(value as i64),
        IntegerType::U64 => Val::U64(value as u64),
    })
}

fn read_float(value: &Value) -> Result<f64, String> {
    match value {
        Value::Number(number) => number.as_f64().ok_or_else(|| misfit("a number", value)),
        Value::String(text) => match &**text {
            NAN => Ok(f64::NAN),
            INFINITY => Ok(f64::INFINITY),
            NEGATIVE_INFINITY => Ok(f64::NEG_INFINITY),
            _ => Err(misfit("a number", value)),
        },
        other => Err(misfit("a number", other)),
    }
}

/// Rounds to the nearest 32-bit float.
fn narrow(value: f64) -> Result<f32, String> {
    let narrow = value as f32;
    match narrow.is_infinite() && value.is_finite() {
        true => Err(format!("must be a number of 32 bits, but is `{value:e}`")),
        false => Ok(narrow),
    }
}

fn read_char(text: &str) -> Result<char, String> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err("must have exactly one character".to_owned()),
    }
}

fn description(ty: &WitType) -> &'static str {
    match ty {
        WitType::Bool => "true or false",
        WitType::Integer(_) | WitType::Float32 | WitType::Float64 => "a number",
        WitType::Char | WitType::String | WitType::Enum(_) => "a string",
        WitType::List(_) | WitType::Tuple(_) | WitType::Flags(_) => "an array",
        WitType::Record(_) | WitType::Variant(_) | WitType::Result { .. } => "an object",
        WitType::Option(ty) => description(ty),
    }
}

fn misfit(expected: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("must be {expected}, but is {found}")
}

fn not_one_of<T>(found: &str, names: &Named<T>) -> String {
    const MOST: usize = 20;
    let listed: Vec<_> = names.iter().take(MOST).map(|(name, _)| format!("`{name}`")).collect();
    let more = if names.len() > MOST { ", …" } else { "" };
    format!("must be one of {}{more}, but is `{}`", listed.join(", "), shown(found))
}

/// The text of a result would exceed its limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Formats a value as text for a model: the string itself, or JSON of at most `limit` bytes.
///
/// # Errors
///
/// [`TooLong`] if the limit is exceeded.
pub(super) fn text(ty: &WitType, value: &Val, limit: usize) -> Result<String, TooLong> {
    if let Val::String(text) = value {
        return if text.len() <= limit { Ok(text.clone()) } else { Err(TooLong) };
    }
    json(ty, value, limit)
}

/// Formats a value as JSON of at most `limit` bytes.
///
/// # Errors
///
/// [`TooLong`] if the limit is exceeded.
pub(super) fn json(ty: &WitType, value: &Val, limit: usize) -> Result<String, TooLong> {
    let mut text = Text { bytes: Vec::new(), limit };
    // The only error is the limit: strings are UTF-8, and each value has its type.
    write(ty, value, &mut text).map_err(|_| TooLong)?;
    String::from_utf8(text.bytes).map_err(|_| TooLong)
}

/// Bytes up to a limit.
struct Text {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Text {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if part.len() > self.limit - self.bytes.len() {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(ty: &WitType, value: &Val, to: &mut Text) -> io::Result<()> {
    match (ty, value) {
        (_, Val::Bool(value)) => write!(to, "{value}"),
        (_, Val::S8(value)) => write!(to, "{value}"),
        (_, Val::U8(value)) => write!(to, "{value}"),
        (_, Val::S16(value)) => write!(to, "{value}"),
        (_, Val::U16(value)) => write!(to, "{value}"),
        (_, Val::S32(value)) => write!(to, "{value}"),
        (_, Val::U32(value)) => write!(to, "{value}"),
        (_, Val::S64(value)) => write!(to, "{value}"),
        (_, Val::U64(value)) => write!(to, "{value}"),
        (_, Val::Float32(value)) if value.is_finite() => Ok(serde_json::to_writer(to, value)?),
        (_, Val::Float32(value)) => write_special(f64::from(*value), to),
        (_, Val::Float64(value)) if value.is_finite() => Ok(serde_json::to_writer(to, value)?),
        (_, Val::Float64(value)) => write_special(*value, to),
        (_, Val::Char(value)) => Ok(serde_json::to_writer(to, value)?),
        (_, Val::String(text) | Val::Enum(text)) => write_string(text, to),
        (WitType::List(ty), Val::List(values)) => {
            write_array(values, to, |value, to| write(ty, value, to))
        }
        (WitType::Tuple(types), Val::Tuple(values)) => {
            write_array(types.iter().zip(values), to, |(ty, value), to| write(ty, value, to))
        }
        (WitType::Record(types), Val::Record(fields)) => {
            let fields = types.iter().zip(fields);
            write_object(fields.map(|((name, ty), (_, value))| (&**name, Some((ty, value)))), to)
        }
        (WitType::Variant(cases), Val::Variant(name, payload)) => {
            to.write_all(b"{\"tag\":")?;
            write_string(name, to)?;
            if let (Some((_, Some(ty))), Some(payload)) = (cases.find(name), payload) {
                to.write_all(b",\"val\":")?;
                write(ty, payload, to)?;
            }
            to.write_all(b"}")
        }
        (WitType::Option(_), Val::Option(None)) => to.write_all(b"null"),
        (WitType::Option(ty), Val::Option(Some(value))) => match ty.is_nullable() {
            true => write_object([("some", Some((&**ty, &**value)))], to),
            false => write(ty, value, to),
        },
        (WitType::Result { ok, err }, Val::Result(result)) => {
            let (side, ty, value) = match result {
                Ok(value) => ("ok", ok, value),
                Err(value) => ("err", err, value),
            };
            let payload = ty.as_ref().zip(value.as_ref()).map(|(ty, value)| (&**ty, &**value));
            write_object([(side, payload)], to)
        }
        (_, Val::Flags(names)) => write_array(names, to, |name, to| write_string(name, to)),
        // wasmtime creates values of the declared type only.
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

fn write_special(value: f64, to: &mut Text) -> io::Result<()> {
    let name = match value {
        f64::INFINITY => INFINITY,
        f64::NEG_INFINITY => NEGATIVE_INFINITY,
        _ => NAN,
    };
    write!(to, "\"{name}\"")
}

fn write_string(text: &str, to: &mut Text) -> io::Result<()> {
    Ok(serde_json::to_writer(to, text)?)
}

fn write_array<T>(
    elements: impl IntoIterator<Item = T>,
    to: &mut Text,
    mut write: impl FnMut(T, &mut Text) -> io::Result<()>,
) -> io::Result<()> {
    to.write_all(b"[")?;
    for (at, element) in elements.into_iter().enumerate() {
        if at > 0 {
            to.write_all(b",")?;
        }
        write(element, to)?;
    }
    to.write_all(b"]")
}

/// Writes an object; a value that is missing is `null`.
fn write_object<'a>(
    fields: impl IntoIterator<Item = (&'a str, Option<(&'a WitType, &'a Val)>)>,
    to: &mut Text,
) -> io::Result<()> {
    to.write_all(b"{")?;
    for (at, (name, value)) in fields.into_iter().enumerate() {
        if at > 0 {
            to.write_all(b",")?;
        }
        write_string(name, to)?;
        to.write_all(b":")?;
        match value {
            Some((ty, value)) => write(ty, value, to)?,
            None => to.write_all(b"null")?,
        }
    }
    to.write_all(b"}")
}
