//! What a component says of itself.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// What a component's optional export `describe` answers.
///
/// All of it is untrusted text, and all of it yields to configuration. Keys
/// that this version does not know are ignored, so that a component may be newer
/// than its host. One that is a single tool may leave `tools` out and say of
/// itself what [`ToolDescription`] holds.
///
/// Contract: `wit/tool.wit`, world `described-tool`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The tools that it can be.
    pub tools: Vec<ToolDescription>,
    /// The prompts that it serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PromptDescription>,
    /// The resources that it serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceDescription>,
    /// The forms of further resources that it serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_templates: Vec<ResourceTemplateDescription>,
}

/// What a component says of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDescription {
    /// The name the tool would like to be called by.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema for the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// A JSON Schema for the content, where that is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints about the tool's behaviour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// What the tool would like to be granted, by the kind of grant. It grants
    /// nothing; `kitbag-policy` knows the kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Map<String, Value>>,
    /// Before which calls the tool would like a person to be asked; `kitbag-policy` knows the
    /// forms. It makes no configuration milder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Value>,
}

/// A text for a model that a person chooses, as the Model Context Protocol has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptDescription {
    /// The name it is asked for by.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What goes into it. The values are texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// One argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its key.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether there is no prompt without it. Default: no.
    #[serde(default)]
    pub required: bool,
}

/// A document that a component serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDescription {
    /// What it is asked for by.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its form, such as `text/html`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// Documents that a component serves under URIs of one form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplateDescription {
    /// The form of their URIs (RFC 6570).
    pub uri_template: String,
    /// What they are called.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their form, where all have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// Hints about a tool's behaviour, by the names of the Model Context Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Talks to the world outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Description {
    /// What it says of the tool of a name: the entry of that name, or the only one.
    pub fn tool(&self, name: &str) -> Option<&ToolDescription> {
        match &self.tools[..] {
            [only] => Some(only),
            tools => tools.iter().find(|tool| tool.name == name),
        }
    }

    /// Whether it serves anything besides tools.
    pub fn serves_more(&self) -> bool {
        let Self { tools: _, prompts, resources, resource_templates } = self;
        !(prompts.is_empty() && resources.is_empty() && resource_templates.is_empty())
    }
}

impl<'de> Deserialize<'de> for Description {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Both forms at once: reading a schema twice would be a large part of a start.
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
        // As the cache keeps it.
        let again = serde_json::to_value(&description).unwrap();
        assert_eq!(serde_json::from_value::<Description>(again).unwrap(), description);
    }

    #[test]
    fn a_tool_takes_the_entry_of_its_name_or_the_only_one() {
        check(json!({ "name": "a" }), "a", Some("a"));
        check(json!({ "name": "a" }), "b", Some("a"));
        check(json!({ "tools": [{ "name": "a" }] }), "b", Some("a"));
        let two = json!({ "tools": [{ "name": "a" }, { "name": "b", "title": "B" }] });
        check(two.clone(), "b", Some("b"));
        check(two, "c", None);
        check(json!({ "tools": [], "prompts": [{ "name": "p" }] }), "a", None);
    }

    #[test]
    fn what_is_no_description_is_refused() {
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
