//! TOML. Dates become strings.

use std::mem;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::scalar::Special;
use crate::format::Format;
use crate::mistake::{DEPTH, Mistake};
use crate::notes::Notes;
use crate::pointer;

/// Reads a document.
pub(crate) fn read(text: &str, notes: &mut Notes) -> Result<Value, Mistake> {
    let table = parse(text)?;
    value(text, table, &mut Vec::new(), notes)
}

/// Returns the start of a value: its line and column, from 1.
pub(crate) fn place(text: &str, pointer: &str) -> (usize, usize) {
    let Ok(table) = parse(text) else { return (1, 1) };
    let (mut value, mut start) = (&table, 0);
    for key in pointer::keys(pointer) {
        let inner = match value.get_ref() {
            DeValue::Table(table) => table.get(key.as_str()),
            DeValue::Array(items) => key.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        let Some(inner) = inner else { break };
        (value, start) = (inner, inner.span().start);
    }
    pointer::line_and_column(text, start)
}

fn parse(text: &str) -> Result<Spanned<DeValue<'_>>, Mistake> {
    let table = DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let what = error.message().replace('\n', "; ");
        Mistake::syntax(Format::Toml, &what, pointer::line_and_column(text, start))
    })?;
    let span = table.span();
    Ok(Spanned::new(span, DeValue::Table(table.into_inner())))
}

fn value<'a>(
    text: &str,
    spanned: Spanned<DeValue<'a>>,
    keys: &mut Vec<String>,
    notes: &mut Notes,
) -> Result<Value, Mistake> {
    let start = spanned.span().start;
    let at = || pointer::line_and_column(text, start);
    let unfit =
        |what: String, keys: &[String]| Err(Mistake::unfit(&what, at(), pointer::written(keys)));
    if keys.len() > DEPTH {
        // Thousands of nested tables are not dropped recursively, which would overflow the stack.
        mem::forget(spanned);
        return Err(Mistake::syntax(Format::Toml, "recursion limit exceeded", at()));
    }
    Ok(match spanned.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Integer(number) => {
            let digits = match number.radix() {
                10 => Some(number.as_str().to_owned()),
                radix => u128::from_str_radix(number.as_str(), radix).ok().map(|it| it.to_string()),
            };
            match digits.as_deref().and_then(parse_number) {
                Some(number) => Value::Number(number),
                None => return unfit(format!("the number `{number}`"), keys),
            }
        }
        DeValue::Float(number) => match parse_number(number.as_str()) {
            Some(digits) => Value::Number(digits),
            None if number.as_str().ends_with("nan") => Special::Nan.value("", notes, at().0),
            None => Special::Infinity.value(number.as_str(), notes, at().0),
        },
        DeValue::Array(items) => {
            let mut values = Vec::with_capacity(items.len());
            let mut items = items.into_iter();
            while let Some(item) = items.next() {
                keys.push(values.len().to_string());
                match value(text, item, keys, notes) {
                    Ok(item) => values.push(item),
                    Err(mistake) => {
                        mem::forget(items);
                        return Err(mistake);
                    }
                }
                keys.pop();
            }
            Value::Array(values)
        }
        DeValue::Table(table) => {
            let mut map = Map::with_capacity(table.len());
            let mut entries = table.into_iter();
            while let Some((key, item)) = entries.next() {
                let key = key.into_inner().into_owned();
                keys.push(key.clone());
                match value(text, item, keys, notes) {
                    Ok(item) => map.insert(key, item),
                    Err(mistake) => {
                        mem::forget(entries);
                        return Err(mistake);
                    }
                };
                keys.pop();
            }
            Value::Object(map)
        }
    })
}

/// Parses a decimal number, which may have a plus sign.
fn parse_number(digits: &str) -> Option<Number> {
    digits.strip_prefix('+').unwrap_or(digits).parse().ok()
}
