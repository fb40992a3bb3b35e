//! Descriptions derived from the type of the arguments.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::description::Description;

impl Description {
    /// Describes a tool by the type of its arguments: the doc comment of the type is the
    /// description, and the fields are the arguments, with their doc comments as descriptions.
    ///
    /// ```
    /// use kitbag_sdk::{Description, json, schemars};
    ///
    /// /// Count the words of a text file.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Arguments {
    ///     /// File, relative to the workspace.
    ///     path: Option<String>,
    /// }
    ///
    /// let expected = Description::new("word_count")
    ///     .description("Count the words of a text file.")
    ///     .arguments(
    ///         json!({
    ///             "path": { "type": "string", "description": "File, relative to the workspace." },
    ///         }),
    ///         &[],
    ///     );
    /// assert_eq!(Description::of::<Arguments>("word_count"), expected);
    /// ```
    ///
    /// An optional argument is one that may be absent; `null` is not a value of it. Unknown
    /// arguments are refused.
    pub fn of<T: JsonSchema>(name: impl Into<String>) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
        let mut schema = schema.as_object().cloned().unwrap_or_default();
        schema.remove("title");
        let text = match schema.remove("description") {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let described = match text {
            Some(text) => Self::new(name).description(text),
            None => Self::new(name),
        };
        described.input_schema(Value::Object(closed(schema)))
    }
}

/// Refuses unknown arguments, and `null` for optional ones.
fn closed(mut schema: Map<String, Value>) -> Map<String, Value> {
    if schema.get("type") != Some(&json!("object")) {
        return schema;
    }
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|keys| keys.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect())
        .unwrap_or_default();
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    for (key, property) in properties.as_object_mut().into_iter().flatten() {
        if !required.contains(key) {
            without_null(property);
        }
        // Names of number types, which are not part of JSON Schema.
        if let Some(property) = property.as_object_mut()
            && property.get("type").is_some_and(|ty| ty == "integer" || ty == "number")
        {
            property.remove("format");
        }
    }
    schema.entry("additionalProperties").or_insert(Value::Bool(false));
    schema
}

/// Removes `null` from the types of a schema.
fn without_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|ty| ty != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({ "type": "null" }));
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only the schema is used")]
    enum Order {
        ByName,
        BySize,
    }

    /// List files.
    ///
    /// The second paragraph.
    #[derive(serde::Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Arguments {
        /// The directory.
        path: String,
        /// The number of files.
        #[serde(default = "ten")]
        most: u32,
        /// The order.
        order: Option<Order>,
        size: Option<f64>,
        names: Option<Vec<String>>,
    }

    fn ten() -> u32 {
        10
    }

    #[derive(serde::Deserialize, JsonSchema)]
    struct Nothing {}

    fn described<T: JsonSchema>() -> Value {
        serde_json::from_str(&Description::of::<T>("a").to_string()).unwrap()
    }

    #[test]
    fn types_describe_arguments() {
        assert_eq!(
            described::<Arguments>(),
            json!({
                "name": "a",
                "description": "List files.\n\nThe second paragraph.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "path": { "type": "string", "description": "The directory." },
                        "most": {
                            "type": "integer",
                            "minimum": 0,
                            "default": 10,
                            "description": "The number of files.",
                        },
                        "order": {
                            "type": "string",
                            "enum": ["by_name", "by_size"],
                            "description": "The order.",
                        },
                        "size": { "type": "number" },
                        "names": { "type": "array", "items": { "type": "string" } },
                    },
                    "required": ["path"],
                    "additionalProperties": false,
                },
            })
        );
    }

    #[test]
    fn tools_without_arguments_have_a_closed_schema() {
        assert_eq!(
            described::<Nothing>(),
            json!({
                "name": "a",
                "inputSchema": {
                    "type": "object",
                    "properties": {},
                    "additionalProperties": false,
                },
            })
        );
    }
}
