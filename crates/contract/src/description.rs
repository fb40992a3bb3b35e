//! Descriptions of components.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The result of a component's optional export `describe`.
///
/// All of it is untrusted, and configuration overrides all of it. Unknown keys are ignored, so that
/// a component may be newer than its host. A component with a single tool may omit `tools` and put
/// the keys of [`ToolDescription`] at the top level.
///
/// Contract: `wit/tool.wit`, world `described-tool`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The tools of the component.
    pub tools: Vec<ToolDescription>,
    /// The prompts that the component serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PromptDescription>,
    /// The resources that the component serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceDescription>,
    /// URI templates of further resources that the component serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_templates: Vec<ResourceTemplateDescription>,
}

/// The description of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDescription {
    /// The tool's preferred name.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The purpose of the tool, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema for the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// A JSON Schema for the content, if the content is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints about the tool's behaviour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The requested grants, by kind of grant. They grant nothing; `kitbag-policy` defines the
    /// kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Map<String, Value>>,
    /// The calls that should need a person's approval; `kitbag-policy` defines the forms. It cannot
    /// relax a configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Value>,
}

/// A prompt as in the Model Context Protocol: a text for a model that a person chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptDescription {
    /// The name of the prompt.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The purpose of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments of the prompt. Their values are strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// One argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// The key of the argument.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The meaning of the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if the prompt cannot be rendered without the argument. Default: false.
    #[serde(default)]
    pub required: bool,
}

/// A document that a component serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDescription {
    /// The URI of the document.
    pub uri: String,
    /// The name of the document.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The content of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type, such as `text/html`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// Documents that a component serves under URIs that match a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplateDescription {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// The name of the documents.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The content of the documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type, if all documents have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// Hints about a tool's behaviour, as in the Model Context Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The tool changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy existing data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeating a call with the same arguments has no further effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with external systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Description {
    /// Returns the description of a tool: the entry with its name, or the only entry.
    pub fn tool(&self, name: &str) -> Option<&ToolDescription> {
        match &self.tools[..] {
            [only] => Some(only),
            tools => tools.iter().find(|tool| tool.name == name),
        }
    }

    /// Returns true if the component serves prompts, resources or templates.
    pub fn serves_more(&self) -> bool {
        let Self { tools: _, prompts, resources, resource_templates } = self;
        !(prompts.is_empty() && resources.is_empty() && resource_templates.is_empty())
    }
}

impl<'de> Deserialize<'de> for Description {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Both forms in one pass: parsing a schema twice would be a large part of the start-up
        // time.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Written {
            tools: Option<Vec<ToolDescription>>,
            #[serde(default)]
            prompts: Vec<PromptDescription>,
            #[serde(default)]
            resources: Vec<ResourceDescription>,
            #[serde(default)]
            resource_templates: Vec<ResourceTemplateDescription>,
            name: Option<String>,
            title: Option<String>,
            description: Option<String>,
            input_schema: Option<Value>,
            output_schema: Option<Value>,
            annotations: Option<Annotations>,
            grants: Option<Map<String, Value>>,
            approve: Option<Value>,
        }
        let written = Written::deserialize(deserializer)?;
        let tools = match written.tools {
            Some(tools) => tools,
            None => vec![ToolDescription {
                name: written.name.ok_or_else(|| D::Error::missing_field("name"))?,
                title: written.title,
                description: written.description,
                input_schema: written.input_schema,
                output_schema: written.output_schema,
                annotations: written.annotations,
                grants: written.grants,
                approve: written.approve,
            }],
        };
        let Written { prompts, resources, resource_templates, .. } = written;
        Ok(Self { tools, prompts, resources, resource_templates })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(answer: Value, name: &str, expected: Option<&str>) {
        let description: Description = serde_json::from_value(answer).unwrap();
        let tool = description.tool(name).map(|tool| &*tool.name);
        assert_eq!(tool, expected);
        // The form in the cache.
        let again = serde_json::to_value(&description).unwrap();
        assert_eq!(serde_json::from_value::<Description>(again).unwrap(), description);
    }

    #[test]
    fn tools_use_the_named_or_the_only_entry() {
        check(json!({ "name": "a" }), "a", Some("a"));
        check(json!({ "name": "a" }), "b", Some("a"));
        check(json!({ "tools": [{ "name": "a" }] }), "b", Some("a"));
        let two = json!({ "tools": [{ "name": "a" }, { "name": "b", "title": "B" }] });
        check(two.clone(), "b", Some("b"));
        check(two, "c", None);
        check(json!({ "tools": [], "prompts": [{ "name": "p" }] }), "a", None);
    }

    #[test]
    fn invalid_descriptions_are_refused() {
        for answer in [
            json!({}),
            json!([]),
            json!({ "tools": [{}] }),
            json!({ "name": "a", "prompts": [{}] }),
            json!({ "name": "a", "resources": [{ "uri": "x:y" }] }),
        ] {
            assert!(serde_json::from_value::<Description>(answer.clone()).is_err(), "{answer}");
        }
    }
}
