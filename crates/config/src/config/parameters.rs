//! The arguments that a tool takes.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::layers::origin::Sourced;

/// The parameters of a tool, or the properties of an object, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// The names with their definitions, in the order of the file.
    pub entries: Vec<(String, Parameter)>,
}

/// A parameter of a tool, a property of an object, or the elements of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The type of its value. `None`: any JSON value.
    pub kind: Option<Sourced<ParameterType>>,
    /// The meaning of the parameter, for the model.
    pub description: Option<Sourced<String>>,
    /// `true` refuses a call without it. Default `false`.
    pub required: Sourced<bool>,
    /// The value if a call does not have the argument; fits `kind` and `choices`.
    pub default: Option<Sourced<Value>>,
    /// The allowed values; each fits `kind`. `None`: every value of the type.
    pub choices: Option<Sourced<Vec<Value>>>,
    /// The definition of the elements of an array. `None`: any elements.
    pub items: Option<Box<Parameter>>,
    /// The keys of an object. `None`: any keys.
    pub properties: Option<Parameters>,
}

/// The type of a parameter, by its name in JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ParameterType {
    /// Text.
    String,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list, with elements of the type in `items`.
    Array,
    /// Keys and values, with the keys in `properties`.
    Object,
}

impl Parameters {
    /// Returns the JSON Schema of an object with exactly these keys, in the order of the file.
    pub fn input_schema(&self) -> Value {
        let properties: Map<_, _> = self
            .entries
            .iter()
            .map(|(name, parameter)| (name.clone(), parameter.schema()))
            .collect();
        let required: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, parameter)| parameter.required.value)
            .map(|(name, _)| name.as_str())
            .collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

impl Parameter {
    /// Returns the JSON Schema of the value.
    pub fn schema(&self) -> Value {
        let mut schema = match &self.properties {
            Some(properties) => properties.input_schema(),
            None => match &self.kind {
                Some(kind) => json!({ "type": kind.value.as_str() }),
                None => json!({}),
            },
        };
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema[key] = value;
            }
        };
        set("description", self.description.as_ref().map(|text| text.value.clone().into()));
        set("enum", self.choices.as_ref().map(|choices| choices.value.clone().into()));
        set("default", self.default.as_ref().map(|default| default.value.clone()));
        set("items", self.items.as_ref().map(|items| items.schema()));
        schema
    }
}

impl ParameterType {
    /// All types.
    pub const ALL: [Self; 6] =
        [Self::String, Self::Number, Self::Integer, Self::Boolean, Self::Array, Self::Object];

    /// Returns the name of the type in JSON Schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}
