//! The types of schemas and values.

use serde_json::{Map, Value};

/// A set of JSON types. An integer is a number as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(1 << 1);
    pub(crate) const INTEGER: Self = Self(1 << 2);
    pub(crate) const NUMBER: Self = Self(1 << 2 | 1 << 3);
    pub(crate) const STRING: Self = Self(1 << 4);
    pub(crate) const ARRAY: Self = Self(1 << 5);
    pub(crate) const OBJECT: Self = Self(1 << 6);
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self(0x7f);

    /// Returns the types of the keyword `type`, if present.
    pub(crate) fn named(rules: &Map<String, Value>) -> Option<Self> {
        Some(match rules.get("type")? {
            Value::String(name) => Self::of_name(name),
            Value::Array(names) => {
                let names = names.iter().filter_map(Value::as_str);
                names.map(Self::of_name).fold(Self::NONE, Self::or)
            }
            _ => Self::NONE,
        })
    }

    /// Returns the types that values of a schema may have, by `type` in the schema or in all
    /// branches of a choice.
    pub(crate) fn of(schema: &Value) -> Self {
        /// The deepest nesting of choices that is examined.
        const LEVELS: usize = 3;
        Self::of_level(schema, LEVELS)
    }

    fn of_level(schema: &Value, levels: usize) -> Self {
        let Value::Object(rules) = schema else { return Self::ALL };
        if let Some(named) = Self::named(rules) {
            return named;
        }
        let choice = ["anyOf", "oneOf"].iter().find_map(|keyword| rules.get(*keyword)?.as_array());
        match (choice, levels.checked_sub(1)) {
            (Some(branches), Some(levels)) => {
                let branches = branches.iter().map(|branch| Self::of_level(branch, levels));
                branches.fold(Self::NONE, Self::or)
            }
            _ => Self::ALL,
        }
    }

    /// Returns the type of a value.
    pub(crate) fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => Self::NUMBER.without(Self::INTEGER),
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// Returns true if the sets overlap.
    pub(crate) fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the intersection.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the union.
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn of_name(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::NONE,
        }
    }
}
