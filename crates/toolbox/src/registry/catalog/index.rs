//! The prompts and resources of a toolbox's components that are known without loading them.

use std::collections::{BTreeMap, HashSet};

use kitbag_base::text::shown;
use kitbag_contract::{
    Description, PromptDescription, ResourceDescription, ResourceTemplateDescription, ToolName,
};
use kitbag_host::Metering;

use super::{
    EXPRESSIONS, KNOWLEDGE_PROMPT, KNOWLEDGE_SCHEME, SERVER_SCHEME, ServedItem, ServedItems,
};
use crate::registry::Toolbox;
use crate::registry::{lock, resolve};

impl Toolbox {
    /// Returns the known prompts and resources of the components of all enabled tools. Nothing is
    /// compiled or run, but the cache of the components is read.
    pub fn known_served(&self) -> ServedItems {
        let mut served = ServedItems::default();
        let mut known = resolve::KnownDescriptions::default();
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
                // The component does not match the lock file.
                Err(_) => {}
                Ok(None) => served.undescribed.push(name.clone()),
                // The description does not match the lock file.
                Ok(Some(says)) if lock::refused(configured, says).is_some() => {}
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

    /// Returns true if the component of a tool is known to serve prompts or resources.
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

/// The items found until now, by name, URI or template.
#[derive(Default)]
struct Offers {
    prompts: BTreeMap<String, ServedItem<PromptDescription>>,
    resources: BTreeMap<String, ServedItem<ResourceDescription>>,
    templates: BTreeMap<String, ServedItem<ResourceTemplateDescription>>,
}

impl Offers {
    /// Adds the items that a component serves. An earlier item with the same name takes precedence.
    fn add(&mut self, tool: &ToolName, description: &Description, problems: &mut Vec<String>) {
        for prompt in &description.prompts {
            let own = prompt.name == KNOWLEDGE_PROMPT;
            add(&mut self.prompts, tool, ("prompt", &prompt.name, own), prompt, problems);
        }
        for resource in &description.resources {
            let own = is_own(&resource.uri);
            add(&mut self.resources, tool, ("resource", &resource.uri, own), resource, problems);
        }
        for template in &description.resource_templates {
            let uri = &template.uri_template;
            // The literal start of a template decides, regardless of its expressions.
            let own = is_own(uri);
            if uri.matches('{').count() > EXPRESSIONS {
                problems.push(format!(
                    "the resource template `{}` of `{tool}` is omitted: it has more than \
                     {EXPRESSIONS} expressions",
                    shown(uri)
                ));
                continue;
            }
            add(&mut self.templates, tool, ("resource template", uri, own), template, problems);
        }
    }
}

/// Returns true if a URI is one of kitbag's own, or one of a server.
fn is_own(uri: &str) -> bool {
    [KNOWLEDGE_SCHEME, SERVER_SCHEME].iter().any(|scheme| {
        uri.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

fn add<T: Clone>(
    found: &mut BTreeMap<String, ServedItem<T>>,
    tool: &ToolName,
    (kind, name, is_own): (&str, &str, bool),
    description: &T,
    problems: &mut Vec<String>,
) {
    let left_out = match found.get(name) {
        _ if is_own => "belongs to kitbag".to_owned(),
        Some(first) => format!("is already served by `{}`", first.tool),
        None => {
            let item = ServedItem { tool: tool.clone(), description: description.clone() };
            found.insert(name.to_owned(), item);
            return;
        }
    };
    problems.push(format!("the {kind} `{}` of `{tool}` is omitted: it {left_out}", shown(name)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::URI_BYTES;
    use super::*;

    #[test]
    fn expensive_templates_and_uris_are_not_compared() {
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
        let served = ServedItems { templates, ..ServedItems::default() };
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
                "the prompt `knowledge` of `one` is omitted: it belongs to kitbag",
                "the resource `kb://a/b` of `one` is omitted: it belongs to kitbag",
                "the prompt `p` of `two` is omitted: it is already served by `one`",
                "the prompt `knowledge` of `two` is omitted: it belongs to kitbag",
                "the resource `a:b` of `two` is omitted: it is already served by `one`",
                "the resource `kb://a/b` of `two` is omitted: it belongs to kitbag",
                "the resource template `a:{b}` of `two` is omitted: it is already served by `one`",
            ]
        );
    }
}
