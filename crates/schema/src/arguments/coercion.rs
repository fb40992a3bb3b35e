//! Converts arguments of clients and models to the types in the schema.
//!
//! A value is coerced only if the schema does not accept its type, and only in one way: JSON text
//! becomes the array or object that it contains, a single value becomes the only element of an
//! array, and a scalar becomes the one scalar type that the schema accepts, if it is spelled
//! exactly so. A null is removed if its argument is optional and may not be null. Other values are
//! left to the later check.

use std::fmt;

use kitbag_base::json::{self, Digits, JsonBudget, pointer};
use kitbag_base::text::shown;
use kitbag_base::{ARGUMENTS_BYTES, ARGUMENTS_DEPTH};
use serde_json::{Map, Number, Value};

use super::views::Views;
use crate::problems::ArgumentProblem;
use crate::types::Types;

/// The largest integer up to which floats represent every integer.
const EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// A change of the arguments before their check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coercion {
    /// The position in the arguments, as a JSON pointer.
    pub pointer: String,
    /// The change, such as `JSON text, read as an array`.
    pub change: &'static str,
}

impl fmt::Display for Coercion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", shown(&self.pointer), self.change)
    }
}

/// Coerces the values of one call.
pub(super) struct Coercer<'a, 's> {
    pub(super) views: &'a Views<'s>,
    pub(super) digits: &'a mut Digits,
    pub(super) coercions: &'a mut Vec<Coercion>,
    /// The problems of integers that a tool could not read.
    pub(super) problems: Vec<ArgumentProblem>,
    /// The number of values that strings may still expand to.
    values_left: usize,
}

impl<'a, 's> Coercer<'a, 's> {
    pub(super) fn new(
        views: &'a Views<'s>,
        digits: &'a mut Digits,
        coercions: &'a mut Vec<Coercion>,
    ) -> Self {
        let values_left = JsonBudget::ARGUMENTS.values;
        Self { views, digits, coercions, problems: Vec::new(), values_left }
    }

    /// Coerces a value and all values in it.
    pub(super) fn coerce(
        &mut self,
        schema: &'s Value,
        value: &mut Value,
        at: &mut String,
        depth: usize,
    ) {
        // Deeper values are refused as a whole.
        if depth > ARGUMENTS_DEPTH {
            return;
        }
        let accepted = self.views.types(schema);
        if let Some(change) = self.change(schema, accepted, value, at) {
            self.note(at, change);
        }
        if !accepted.meet(Types::of_value(value))
            && accepted.meet(Types::INTEGER)
            && let Value::Number(number) = &*value
            && number.as_f64().is_some_and(|float| float.fract() == 0.0)
        {
            let message =
                format!("must be an integer, but is the number {number}: write all digits");
            self.problems.push(ArgumentProblem { pointer: at.clone(), message });
        }
        let views = self.views.of(schema, Types::of_value(value));
        match value {
            Value::Object(object) => self.coerce_object(&views, object, at, depth),
            Value::Array(elements) => {
                for (index, element) in elements.iter_mut().enumerate() {
                    if let Some(items) = views.iter().find_map(|view| item_schema(view, index)) {
                        self.within(&format!("/{index}"), items, element, at, depth);
                    }
                }
            }
            _ => {}
        }
    }

    fn coerce_object(
        &mut self,
        views: &[&'s Value],
        object: &mut Map<String, Value>,
        at: &mut String,
        depth: usize,
    ) {
        let is_required = |key: &str| {
            let required = |view: &&Value| view["required"].as_array().cloned().unwrap_or_default();
            views.iter().flat_map(required).any(|name| name == key)
        };
        let is_absent = |key: &str, value: &Value| {
            let takes_null = |schema| self.views.types(schema).meet(Types::NULL);
            value.is_null()
                && properties(views, key).next().is_some()
                && !properties(views, key).all(takes_null)
                && !is_required(key)
        };
        let absent: Vec<_> = object.iter().filter(|(key, value)| is_absent(key, value)).collect();
        let absent: Vec<_> = absent.into_iter().map(|(key, _)| key.clone()).collect();
        for key in absent {
            object.shift_remove(&key);
            self.note(&format!("{at}{}", pointer(&key)), "null, treated as absent");
        }
        for (key, value) in object {
            let segment = pointer(key);
            let schemas: Vec<_> = properties(views, key).collect();
            for schema in &schemas {
                self.within(&segment, schema, value, at, depth);
            }
            let has_patterns = views.iter().any(|view| view.get("patternProperties").is_some());
            if !schemas.is_empty() || has_patterns {
                continue;
            }
            let others = views.iter().find_map(|view| view.get("additionalProperties"));
            if let Some(others) = others {
                self.within(&segment, others, value, at, depth);
            }
        }
    }

    fn within(
        &mut self,
        segment: &str,
        schema: &'s Value,
        value: &mut Value,
        at: &mut String,
        depth: usize,
    ) {
        let length = at.len();
        at.push_str(segment);
        self.coerce(schema, value, at, depth + 1);
        at.truncate(length);
    }

    fn note(&mut self, at: &str, change: &'static str) {
        self.coercions.push(Coercion { pointer: at.to_owned(), change });
    }

    /// Coerces a value whose type is not wanted, and describes the change.
    fn change(
        &mut self,
        schema: &'s Value,
        accepted: Types,
        value: &mut Value,
        at: &str,
    ) -> Option<&'static str> {
        if accepted.meet(Types::of_value(value)) {
            return None;
        }
        if let Value::String(text) = value
            && accepted.meet(Types::ARRAY.or(Types::OBJECT))
            && let Some((parsed, digits)) = self.parsed(text)
        {
            let types = Types::of_value(&parsed);
            let is_text_itself = || {
                self.is_element(schema, value, at) && !self.is_array_of_elements(schema, &parsed)
            };
            if accepted.meet(types) && !(types == Types::ARRAY && is_text_itself()) {
                self.digits.put(at, digits);
                let change = match parsed {
                    Value::Array(_) => "JSON text, read as an array",
                    _ => "JSON text, read as an object",
                };
                *value = parsed;
                return Some(change);
            }
            if types == Types::OBJECT && self.is_element(schema, &parsed, at) {
                self.digits.put(&format!("{at}/0"), digits);
                *value = Value::Array(vec![parsed]);
                return Some("JSON text of an object, read as an array with one element");
            }
        }
        if let Some((scalar, change)) = scalar(accepted, value, self.digits.at(at)) {
            *value = scalar;
            return Some(change);
        }
        if accepted.meet(Types::ARRAY) && self.is_element(schema, value, at) {
            let digits = self.digits.below(at);
            self.digits.put(&format!("{at}/0"), digits);
            *value = Value::Array(vec![std::mem::take(value)]);
            return Some("a single value, read as an array with one element");
        }
        None
    }

    /// Parses a string that contains an array or object as JSON.
    fn parsed(&mut self, text: &str) -> Option<(Value, Digits)> {
        if !text.trim_start().starts_with(['[', '{']) {
            return None;
        }
        let budget = JsonBudget { bytes: ARGUMENTS_BYTES, values: self.values_left };
        let parsed = json::parse_exact(text.as_bytes(), budget).ok()?;
        self.values_left = self.values_left.saturating_sub(count(&parsed.0));
        Some(parsed)
    }

    /// Returns true if a value may be an element of the schema's array, by its type or after
    /// coercion of a scalar.
    fn is_element(&self, schema: &'s Value, value: &Value, at: &str) -> bool {
        let accepted = self.element_types(schema);
        accepted != Types::ALL
            && (accepted.meet(Types::of_value(value))
                || scalar(accepted, value, self.digits.at(at)).is_some())
    }

    fn is_array_of_elements(&self, schema: &'s Value, array: &Value) -> bool {
        let accepted = self.element_types(schema);
        let elements = array.as_array().map(Vec::as_slice).unwrap_or_default();
        elements.iter().all(|element| accepted.meet(Types::of_value(element)))
    }

    fn element_types(&self, schema: &'s Value) -> Types {
        let views = self.views.of(schema, Types::ARRAY);
        let items = views.iter().find_map(|view| item_schema(view, 0));
        items.map_or(Types::ALL, |items| self.views.types(items))
    }
}

/// Returns the schemas of a property.
fn properties<'v, 's>(
    views: &'v [&'s Value],
    key: &'v str,
) -> impl Iterator<Item = &'s Value> + use<'v, 's> {
    views.iter().filter_map(move |view| view.get("properties")?.get(key))
}

/// Returns the schema of an array element.
fn item_schema(view: &Value, index: usize) -> Option<&Value> {
    let listed = [view.get("prefixItems"), view.get("items")].into_iter().flatten();
    let listed = listed.filter_map(Value::as_array).find_map(|items| items.get(index));
    listed.or_else(|| view.get("items").filter(|items| items.is_object()))
}

/// Converts a scalar to the one scalar type that is wanted, if it is spelled exactly so. `digits`
/// is the original text of a number.
fn scalar(accepted: Types, value: &Value, digits: Option<&str>) -> Option<(Value, &'static str)> {
    let scalars = accepted.and(Types::BOOLEAN.or(Types::NUMBER).or(Types::STRING));
    match value {
        Value::String(text) if scalars == Types::BOOLEAN => match &**text {
            "true" => Some((true.into(), "text, read as a boolean")),
            "false" => Some((false.into(), "text, read as a boolean")),
            _ => None,
        },
        Value::String(text) if scalars == Types::INTEGER || scalars == Types::NUMBER => {
            let number: Number = text.parse().ok()?;
            let is_wanted = scalars == Types::NUMBER || !number.is_f64();
            (is_wanted && number.to_string() == *text)
                .then(|| (Value::Number(number), "text, read as a number"))
        }
        Value::Number(number) if scalars == Types::STRING => {
            let text = digits.map_or_else(|| number.to_string(), str::to_owned);
            Some((text.into(), "a number, read as text"))
        }
        // An integer with a fraction or an exponent, such as `2.0` and `2e0`.
        Value::Number(number) if number.is_f64() && scalars.meet(Types::INTEGER) => {
            let float = number.as_f64()?;
            let is_exact = float.fract() == 0.0 && float.abs() <= EXACT_INTEGER;
            is_exact.then(|| {
                ((float as i64).into(), "an integer, written without fraction or exponent")
            })
        }
        _ => None,
    }
}

/// Counts the values in a value, including itself, as the JSON parser does.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum::<usize>(),
        _ => 0,
    }
}
