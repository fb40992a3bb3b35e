//! Prompts and resources, which components serve in addition to calls.
//!
//! A prompt or resource is served by a run of the component with the grants, limits and answers of
//! its tool. If several tools share the component, the first by name is used.

mod index;

use kitbag_contract::{
    PromptDescription, ResourceDescription, ResourceTemplateDescription, ToolName,
};
use kitbag_schema::Schema;
use serde_json::{Map, json};

/// The prefix of `name` in a call for a prompt. The prompt's name follows. Tool names contain no
/// `/`.
pub const PROMPT_PREFIX: &str = "prompt/";

/// The `name` of a call for a resource.
pub const RESOURCE_NAME: &str = "resource/read";

/// The prompt with the block of knowledge, which no component serves.
pub const KNOWLEDGE_PROMPT: &str = "knowledge";

/// The prefix of the URI of a subject. URIs of components do not begin with it.
pub const KNOWLEDGE_SCHEME: &str = "kb://";

/// The prefix of the URI of a resource of an MCP server, before the server's name. URIs of components
/// do not begin with it.
pub const SERVER_SCHEME: &str = "kitbag://server/";

/// The maximum length in bytes of a URI that is compared with templates, and the maximum number of
/// expressions in a template. The time of a comparison is proportional to their product.
const URI_BYTES: usize = 4 << 10;
const EXPRESSIONS: usize = 16;

/// The known prompts and resources of the components of all enabled tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedItems {
    /// Prompts, by name.
    pub prompts: Vec<ServedItem<PromptDescription>>,
    /// Resources, by URI.
    pub resources: Vec<ServedItem<ResourceDescription>>,
    /// Templates of further resources, by template.
    pub templates: Vec<ServedItem<ResourceTemplateDescription>>,
    /// The tools that may serve prompts or resources. They must be loaded to find out.
    pub undescribed: Vec<ToolName>,
    /// The omitted items, with the reason for each.
    pub problems: Vec<String>,
}

/// A served prompt, resource or template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedItem<T> {
    /// The tool whose component serves it.
    pub tool: ToolName,
    /// The component's description of the item. Untrusted text.
    pub description: T,
}

impl ServedItems {
    /// Finds a prompt.
    pub fn prompt(&self, name: &str) -> Option<&ServedItem<PromptDescription>> {
        self.prompts.iter().find(|prompt| prompt.description.name == name)
    }

    /// Finds the server of a URI, as a resource or by a template: the tool, and the media type if
    /// it is known.
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

/// Returns the JSON Schema of a prompt's arguments, which are strings.
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

/// Returns true if a URI matches a template (RFC 6570). `{name}` matches text without `/`, `?` and
/// `#`, and any other expression matches any text. The component itself reads the exact text.
fn has_form(template: &str, uri: &str) -> bool {
    // The places in the URI where the part of the template up to here may end.
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

/// Returns the places where an expression that begins at one of `starts` may end.
fn stretched(starts: &[bool], expression: &str, uri: &[u8]) -> Vec<bool> {
    let is_plain = !expression.starts_with(['+', '#', '.', '/', ';', '?', '&']);
    let mut ends = match is_plain {
        // An empty value would make a different URI.
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
    fn a_uri_matches_only_its_template() {
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
        // The maximum size of a message, which is quick to compare.
        check_form(&"{+a}x".repeat(50), &"x".repeat(100_000), true);
    }
}
