//! What components serve besides calls: prompts and resources.
//!
//! Serving one is a run of the component with the grants, the limits and the
//! answers of the tool that it is. Where several tools are the same component,
//! that is the first of them by name.

mod index;

use kitbag_contract::{
    PromptDescription, ResourceDescription, ResourceTemplateDescription, ToolName,
};
use kitbag_schema::Schema;
use serde_json::{Map, json};

/// What the `name` of a call for a prompt begins with; the prompt's name follows.
/// No tool's name holds a `/`.
pub const PROMPT_PREFIX: &str = "prompt/";

/// The `name` of a call for a resource.
pub const RESOURCE_NAME: &str = "resource/read";

/// The prompt with the block of knowledge, which is not a component's to serve.
pub const KNOWLEDGE_PROMPT: &str = "knowledge";

/// What the URI of a subject begins with; none of a component's does.
pub const KNOWLEDGE_SCHEME: &str = "kb://";

/// The longest URI that is looked up among templates, in bytes, and how many
/// expressions a template may have: to compare takes as long as their product.
const URI_BYTES: usize = 4 << 10;
const EXPRESSIONS: usize = 16;

/// What the components of all enabled tools serve, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedItems {
    /// Prompts, by name.
    pub prompts: Vec<ServedItem<PromptDescription>>,
    /// Resources, by URI.
    pub resources: Vec<ServedItem<ResourceDescription>>,
    /// Forms of further resources, by template.
    pub templates: Vec<ServedItem<ResourceTemplateDescription>>,
    /// The tools that may serve something; loading them would tell.
    pub undescribed: Vec<ToolName>,
    /// What is left out, and why.
    pub problems: Vec<String>,
}

/// Something that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedItem<T> {
    /// The tool whose component serves it.
    pub tool: ToolName,
    /// What the component says of it. Untrusted text.
    pub description: T,
}

impl ServedItems {
    /// Finds a prompt.
    pub fn prompt(&self, name: &str) -> Option<&ServedItem<PromptDescription>> {
        self.prompts.iter().find(|prompt| prompt.description.name == name)
    }

    /// Finds who serves a URI, by itself or with others of its form: the tool,
    /// and the form of the content where that is known.
    pub fn resource(&self, uri: &str) -> Option<(&ToolName, Option<&str>)> {
        let resource = self.resources.iter().find(|resource| resource.description.uri == uri);
        let resource = resource.map(|item| (&item.tool, item.description.mime_type.as_deref()));
        resource.or_else(|| {
            if uri.len() > URI_BYTES {
                return None;
            }
            let template =
                self.templates.iter().find(|item| has_form(&item.description.uri_template, uri))?;
            Some((&template.tool, template.description.mime_type.as_deref()))
        })
    }
}

/// The JSON Schema of a prompt's arguments, which are texts.
pub(crate) fn schema(prompt: &PromptDescription) -> Schema {
    let arguments = || prompt.arguments.iter();
    let properties: Map<_, _> =
        arguments().map(|argument| (argument.name.clone(), json!({ "type": "string" }))).collect();
    let required: Vec<_> =
        arguments().filter(|argument| argument.required).map(|argument| &argument.name).collect();
    Schema::from(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

/// Whether a URI has the form of a template (RFC 6570). `{name}` stands for text
/// without `/`, `?` and `#`, any other expression for any text: what exactly
/// stands there is for the component to read.
fn has_form(template: &str, uri: &str) -> bool {
    // Where in the URI the part of the template so far may end.
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    let mut rest = template;
    while !rest.is_empty() {
        let (literal, expression, after) = match rest.split_once('{') {
            None => (rest, None, ""),
            Some((literal, tail)) => match tail.split_once('}') {
                Some((expression, after)) => (literal, Some(expression), after),
                None => return false,
            },
        };
        let mut next = vec![false; ends.len()];
        for at in (0..ends.len()).filter(|at| ends[*at]) {
            if uri.as_bytes()[at..].starts_with(literal.as_bytes()) {
                next[at + literal.len()] = true;
            }
        }
        if let Some(expression) = expression {
            next = stretched(&next, expression, uri.as_bytes());
        }
        (ends, rest) = (next, after);
    }
    ends[uri.len()]
}

/// Where an expression may end that begins at one of these places.
fn stretched(starts: &[bool], expression: &str, uri: &[u8]) -> Vec<bool> {
    let is_plain = !expression.starts_with(['+', '#', '.', '/', ';', '?', '&']);
    let mut ends = match is_plain {
        // A value that is empty would make another URI of it.
        true => vec![false; starts.len()],
        false => starts.to_vec(),
    };
    for at in 0..uri.len() {
        let goes_on = !(is_plain && matches!(uri[at], b'/' | b'?' | b'#'));
        ends[at + 1] |= goes_on && (starts[at] || ends[at]);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_form(template: &str, uri: &str, expected: bool) {
        assert_eq!(has_form(template, uri), expected, "{template} {uri}");
    }

    #[test]
    fn a_uri_has_the_form_of_its_template_only() {
        let template = "test://template/{id}/data";
        check_form(template, "test://template/123/data", true);
        check_form(template, "test://template//data", false);
        check_form(template, "test://template/1/2/data", false);
        check_form(template, "test://template/1/data/", false);
        check_form("a:{x}-{y}", "a:1-2-3", true);
        check_form("a:{x}-{y}", "a:-2", false);
        check_form("a:{+path}.txt", "a:b/c.txt", true);
        check_form("a:{+path}.txt", "a:b/c.text", false);
        check_form("a:b{?q}", "a:b", true);
        check_form("a:b{?q}", "a:b?q=1", true);
        check_form("a:{x", "a:{x", false);
        check_form("a:b", "a:b", true);
        check_form("a:{größe}!", "a:ü!", true);
        // As long as a message may be, and no longer to look at for that.
        check_form(&"{+a}x".repeat(50), &"x".repeat(100_000), true);
    }
}
