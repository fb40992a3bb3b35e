//! What a component says about itself.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Map, Value, json};

/// What a tool says about itself, as the contract's `describe` has it.
///
/// Only the name is required. What the configuration says beats what this says.
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
    /// Begins with the tool's name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Map::new()).with("name", Value::String(name.into()))
    }

    /// Reads the JSON of a description, such as a file that
    /// [`describe_section!`](crate::describe_section) puts into the component, too.
    ///
    /// # Panics
    ///
    /// Where the text is no JSON object.
    pub fn from_json(text: &str) -> Self {
        Self(serde_json::from_str(text).expect("a description is a JSON object"))
    }

    /// Describes a component that can be several tools: each that is configured
    /// takes the entry of its own name. [`Call::target`](crate::Call::target) tells
    /// which one is called.
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

    /// Sets what the model reads to know when to call the tool, and how.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.with("description", Value::String(description.into()))
    }

    /// Sets the arguments: the schemas of these `properties` by their names, of which
    /// `required` have to be there, and no others.
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

    /// Sets the JSON Schema of the arguments, where it says more than
    /// [`arguments`](Self::arguments) can.
    #[must_use]
    pub fn input_schema(self, schema: Value) -> Self {
        self.with("inputSchema", schema)
    }

    /// Sets the JSON Schema of the content, where the content is JSON.
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

    /// Sets what the tool would like to be granted, in the shape of the
    /// configuration's `grants`. It is a wish: only the configuration grants.
    #[must_use]
    pub fn grants(self, grants: Value) -> Self {
        self.with("grants", grants)
    }

    /// Sets before which calls the tool would like a person to be asked: `"on-write"`,
    /// `"always"`, or conditions on arguments, `{ "when": { "path": "secrets/**" } }`. It adds to
    /// what the configuration says.
    #[must_use]
    pub fn approve(self, approve: Value) -> Self {
        self.with("approve", approve)
    }

    /// Adds a prompt that the component serves, as the Model Context Protocol has
    /// it: `name`, `title`, `description`, `arguments`.
    #[must_use]
    pub fn prompt(self, prompt: Value) -> Self {
        self.adding("prompts", prompt)
    }

    /// Adds a resource that the component serves, as the Model Context Protocol
    /// has it: `uri`, `name`, `title`, `description`, `mimeType`.
    #[must_use]
    pub fn resource(self, resource: Value) -> Self {
        self.adding("resources", resource)
    }

    /// Adds a form of further resources, as the Model Context Protocol has it:
    /// `uriTemplate`, `name`, `title`, `description`, `mimeType`.
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

/// Writes the JSON object that `describe` returns.
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
    fn every_part_has_the_key_that_the_contract_gives_it() {
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
    fn several_tools_and_what_else_is_served_are_lists() {
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
