//! What components serve besides calls: prompts and resources.
//!
//! Serving one is a run of the component with the grants, the limits and the
//! answers of the tool that it is. Where several tools are the same component,
//! that is the first of them by name.

use std::collections::{BTreeMap, HashSet};

use kitbag_contract::text::shown;
use kitbag_contract::{
    Description, PromptDescription, ResourceDescription, ResourceTemplateDescription, ToolName,
};
use kitbag_host::Metering;
use serde_json::{Map, json};

use crate::{Schema, Toolbox, recorded, resolve};

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
pub struct Served {
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

impl Served {
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

impl Toolbox {
    /// What the components of all enabled tools serve besides calls. Nothing is
    /// compiled and nothing runs, but what is cached of them is read.
    pub fn known_served(&self) -> Served {
        let mut served = Served::default();
        let mut known = resolve::Known::default();
        let (mut sources, mut offers) = (HashSet::new(), Offers::default());
        for (name, configured) in self.enabled() {
            if !configured.source.value.is_component() {
                continue;
            }
            let Ok(source) = self.0.component_source(&configured.source.value) else { continue };
            if !sources.insert(source.clone()) {
                continue;
            }
            let metering = Metering::of(&configured.limits.limits());
            match known.description(&self.0, source, metering) {
                // It is another component than it must be.
                Err(_) => {}
                Ok(None) => served.undescribed.push(name.clone()),
                // What it says is not what was recorded.
                Ok(Some(says)) if recorded::refused(configured, says).is_some() => {}
                Ok(Some(says)) => {
                    if let Some(description) = says.description() {
                        offers.add(name, description, &mut served.problems);
                    }
                }
            }
        }
        served.prompts = offers.prompts.into_values().collect();
        served.resources = offers.resources.into_values().collect();
        served.templates = offers.templates.into_values().collect();
        served
    }

    /// Whether the component of a tool serves anything besides calls, as far as
    /// that is known.
    pub fn serves_more(&self, tool: &str) -> bool {
        let known = || {
            let configured = self.0.find(tool).ok()?;
            let source = self.0.component_source(&configured.source.value).ok()?;
            let metering = Metering::of(&configured.limits.limits());
            self.0.host.known_description(&source, metering).ok()?
        };
        known().is_some_and(|says| says.description().is_some_and(Description::serves_more))
    }
}

/// What was found so far, by what it is asked for by.
#[derive(Default)]
struct Offers {
    prompts: BTreeMap<String, ServedItem<PromptDescription>>,
    resources: BTreeMap<String, ServedItem<ResourceDescription>>,
    templates: BTreeMap<String, ServedItem<ResourceTemplateDescription>>,
}

impl Offers {
    /// Adds what a component serves, unless something before it has its name.
    fn add(&mut self, tool: &ToolName, description: &Description, problems: &mut Vec<String>) {
        for prompt in &description.prompts {
            let own = prompt.name == KNOWLEDGE_PROMPT;
            add(&mut self.prompts, tool, ("prompt", &prompt.name, own), prompt, problems);
        }
        for resource in &description.resources {
            let own = resource.uri.starts_with(KNOWLEDGE_SCHEME);
            add(&mut self.resources, tool, ("resource", &resource.uri, own), resource, problems);
        }
        for template in &description.resource_templates {
            let uri = &template.uri_template;
            // Whatever a form may stand for, it does not stand for the start.
            let own = uri.starts_with(KNOWLEDGE_SCHEME);
            if uri.matches('{').count() > EXPRESSIONS {
                problems.push(format!(
                    "the resource template `{}` of `{tool}` is left out: it has more than \
                     {EXPRESSIONS} expressions",
                    shown(uri)
                ));
                continue;
            }
            add(&mut self.templates, tool, ("resource template", uri, own), template, problems);
        }
    }
}

fn add<T: Clone>(
    found: &mut BTreeMap<String, ServedItem<T>>,
    tool: &ToolName,
    (kind, name, is_own): (&str, &str, bool),
    description: &T,
    problems: &mut Vec<String>,
) {
    let left_out = match found.get(name) {
        _ if is_own => "is kitbag's own".to_owned(),
        Some(first) => format!("is served by `{}` already", first.tool),
        None => {
            let item = ServedItem { tool: tool.clone(), description: description.clone() };
            found.insert(name.to_owned(), item);
            return;
        }
    };
    problems.push(format!("the {kind} `{}` of `{tool}` is left out: it {left_out}", shown(name)));
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

    #[test]
    fn a_template_and_a_uri_that_take_long_to_compare_are_not_compared() {
        let template = |uri_template: String| ResourceTemplateDescription {
            uri_template,
            ..ResourceTemplateDescription::default()
        };
        let of = |expressions: usize| template(format!("a:{}", "{+a}x".repeat(expressions)));
        let resource_templates = vec![of(EXPRESSIONS), of(EXPRESSIONS + 1)];
        let description = Description { resource_templates, ..Description::default() };
        let (mut offers, mut problems) = (Offers::default(), Vec::new());
        offers.add(&ToolName::new("one").unwrap(), &description, &mut problems);
        assert_eq!((offers.templates.len(), problems.len()), (1, 1), "{problems:?}");
        let templates = offers.templates.into_values().collect();
        let served = Served { templates, ..Served::default() };
        let uri = |length: usize| format!("a:{}", "x".repeat(length - 2));
        assert!(served.resource(&uri(URI_BYTES)).is_some());
        assert!(served.resource(&uri(URI_BYTES + 1)).is_none());
    }

    #[test]
    fn the_first_tool_that_serves_a_name_keeps_it() {
        let description: Description = serde_json::from_value(json!({
            "name": "t",
            "prompts": [{ "name": "p" }, { "name": "knowledge" }],
            "resources": [{ "uri": "a:b", "name": "b" }, { "uri": "kb://a/b", "name": "c" }],
            "resourceTemplates": [{ "uriTemplate": "a:{b}", "name": "b" }],
        }))
        .unwrap();
        let (mut offers, mut problems) = (Offers::default(), Vec::new());
        for tool in ["one", "two"] {
            offers.add(&ToolName::new(tool).unwrap(), &description, &mut problems);
        }
        let names = |tool: &str| offers.prompts["p"].tool.as_str() == tool;
        assert!(names("one"));
        assert_eq!(
            (offers.prompts.len(), offers.resources.len(), offers.templates.len()),
            (1, 1, 1)
        );
        assert_eq!(
            problems,
            [
                "the prompt `knowledge` of `one` is left out: it is kitbag's own",
                "the resource `kb://a/b` of `one` is left out: it is kitbag's own",
                "the prompt `p` of `two` is left out: it is served by `one` already",
                "the prompt `knowledge` of `two` is left out: it is kitbag's own",
                "the resource `a:b` of `two` is left out: it is served by `one` already",
                "the resource `kb://a/b` of `two` is left out: it is kitbag's own",
                "the resource template `a:{b}` of `two` is left out: it is served by `one` already",
            ]
        );
    }
}
