//! Descriptions of components.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Map, Value, json};

/// The description of a tool, as returned by the contract's `describe`.
///
/// Only the name is required. The configuration overrides the description.
///
/// ```
/// use kitbag_sdk::{Description, json};
///
/// let description = Description::new("clock")
///     .title("Clock")
///     .description("Tell the time.")
///     .annotations(json!({ "readOnlyHint": true, "openWorldHint": false }));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Description(Map<String, Value>);

impl Description {
    /// Creates a description with the tool's name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Map::new()).with("name", Value::String(name.into()))
    }

    /// Parses the JSON of a description, such as a file that
    /// [`describe_section!`](crate::describe_section) also puts into the component.
    ///
    /// # Panics
    ///
    /// If the text is not a JSON object.
    pub fn from_json(text: &str) -> Self {
        Self(serde_json::from_str(text).expect("a description is a JSON object"))
    }

    /// Describes a component with several tools: each configured tool uses the entry with its own
    /// name. [`Call::target`](crate::Call::target) returns the called one.
    ///
    /// ```
    /// use kitbag_sdk::{Description, json};
    ///
    /// let description = Description::tools([
    ///     Description::new("add").description("Add numbers."),
    ///     Description::new("multiply").description("Multiply numbers."),
    /// ])
    /// .prompt(json!({ "name": "practise", "description": "Practise sums." }));
    /// ```
    pub fn tools(tools: impl IntoIterator<Item = Self>) -> Self {
        let tools = tools.into_iter().map(|tool| Value::Object(tool.0)).collect();
        Self(Map::new()).with("tools", Value::Array(tools))
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", Value::String(title.into()))
    }

    /// Sets the text that tells the model when and how to call the tool.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.with("description", Value::String(description.into()))
    }

    /// Sets the arguments: `properties` maps their names to schemas, `required` lists the required
    /// ones, and others are refused.
    ///
    /// ```
    /// use kitbag_sdk::{Description, json};
    ///
    /// let description = Description::new("greet").arguments(
    ///     json!({ "name": { "type": "string" }, "loud": { "type": "boolean", "default": false } }),
    ///     &["name"],
    /// );
    /// ```
    #[must_use]
    pub fn arguments(self, properties: Value, required: &[&str]) -> Self {
        let mut schema = json!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        self.input_schema(schema)
    }

    /// Sets the JSON Schema of the arguments, for more than [`arguments`](Self::arguments) can
    /// express.
    #[must_use]
    pub fn input_schema(self, schema: Value) -> Self {
        self.with("inputSchema", schema)
    }

    /// Sets the JSON Schema of the content, if the content is JSON.
    #[must_use]
    pub fn output_schema(self, schema: Value) -> Self {
        self.with("outputSchema", schema)
    }

    /// Sets the hints of the Model Context Protocol: `readOnlyHint`,
    /// `destructiveHint`, `idempotentHint`, `openWorldHint`.
    #[must_use]
    pub fn annotations(self, annotations: Value) -> Self {
        self.with("annotations", annotations)
    }

    /// Sets the requested grants, in the form of the configuration's `grants`. Only the
    /// configuration grants them.
    #[must_use]
    pub fn grants(self, grants: Value) -> Self {
        self.with("grants", grants)
    }

    /// Sets the calls that should need a person's approval: `"on-write"`, `"always"`, or conditions
    /// on arguments, `{ "when": { "path": "secrets/**" } }`. It is added to the rules of the
    /// configuration.
    #[must_use]
    pub fn approve(self, approve: Value) -> Self {
        self.with("approve", approve)
    }

    /// Adds a prompt that the component serves, as in the Model Context Protocol: `name`, `title`,
    /// `description`, `arguments`.
    #[must_use]
    pub fn prompt(self, prompt: Value) -> Self {
        self.adding("prompts", prompt)
    }

    /// Adds a resource that the component serves, as in the Model Context Protocol: `uri`, `name`,
    /// `title`, `description`, `mimeType`.
    #[must_use]
    pub fn resource(self, resource: Value) -> Self {
        self.adding("resources", resource)
    }

    /// Adds a template of further resources, as in the Model Context Protocol: `uriTemplate`,
    /// `name`, `title`, `description`, `mimeType`.
    #[must_use]
    pub fn resource_template(self, template: Value) -> Self {
        self.adding("resourceTemplates", template)
    }

    fn adding(mut self, key: &str, value: Value) -> Self {
        let list = self.0.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(value);
        }
        self
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }
}

/// Formats the JSON object that `describe` returns.
impl fmt::Display for Description {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_part_has_its_contract_key() {
        let description = Description::new("a")
            .title("b")
            .description("c")
            .input_schema(json!({ "type": "object" }))
            .output_schema(json!(true))
            .annotations(json!({ "readOnlyHint": true }))
            .grants(json!({ "env": ["LANG"] }))
            .approve(json!("always"));
        assert_eq!(
            serde_json::from_str::<Value>(&description.to_string()).unwrap(),
            json!({
                "name": "a",
                "title": "b",
                "description": "c",
                "inputSchema": { "type": "object" },
                "outputSchema": true,
                "annotations": { "readOnlyHint": true },
                "grants": { "env": ["LANG"] },
                "approve": "always",
            })
        );
    }

    #[test]
    fn arguments_are_a_closed_object() {
        let schema = |required: &[&str]| {
            let description =
                Description::new("a").arguments(json!({ "b": { "type": "string" } }), required);
            serde_json::from_str::<Value>(&description.to_string()).unwrap()["inputSchema"].clone()
        };
        let mut expected = json!({
            "type": "object",
            "properties": { "b": { "type": "string" } },
            "additionalProperties": false,
        });
        assert_eq!(schema(&[]), expected);
        expected["required"] = json!(["b"]);
        assert_eq!(schema(&["b"]), expected);
    }

    #[test]
    fn tools_prompts_and_resources_are_lists() {
        let description = Description::tools([Description::new("a"), Description::new("b")])
            .prompt(json!({ "name": "p" }))
            .prompt(json!({ "name": "q" }))
            .resource(json!({ "uri": "a:b", "name": "r" }))
            .resource_template(json!({ "uriTemplate": "a:{b}", "name": "t" }));
        assert_eq!(
            serde_json::from_str::<Value>(&description.to_string()).unwrap(),
            json!({
                "tools": [{ "name": "a" }, { "name": "b" }],
                "prompts": [{ "name": "p" }, { "name": "q" }],
                "resources": [{ "uri": "a:b", "name": "r" }],
                "resourceTemplates": [{ "uriTemplate": "a:{b}", "name": "t" }],
            })
        );
    }
}
