//! The tools as `tools/list` returns them.

use std::sync::OnceLock;

use kitbag_base::text::printable;
use kitbag_config::{DiscoveryMode, ToolSource};
use kitbag_glob::Glob;
use kitbag_policy::ApprovalRule;
use kitbag_toolbox::definitions::{Definition, Format};
use kitbag_toolbox::discovery::{SearchIndex, SearchedTool, estimated_tokens};
use kitbag_toolbox::{KnownTool, Tool, Toolbox};
use rmcp::model;
use serde_json::{Map, Value, json};

use crate::methods::discovery::{self, OwnTools};

/// The tools of one toolbox by name, with the data that is known without loading them.
pub(crate) struct Catalog {
    /// The output of `kitbag export --format mcp`, with hints for clients in `_meta`.
    pub(crate) tools: Vec<model::Tool>,
    /// The tools that clients list if not all are listed: the pinned tools, and those that find and
    /// call the others.
    shortlist: Option<Vec<model::Tool>>,
    pub(crate) own: OwnTools,
    index: OnceLock<SearchIndex>,
    /// Names of the tools whose own descriptions are not loaded yet.
    pub(crate) undescribed: Vec<String>,
}

impl Catalog {
    /// Reads the cached descriptions of local tools. Compiles nothing.
    pub(crate) fn of(toolbox: &Toolbox) -> Self {
        let mut catalog = Self {
            tools: Vec::new(),
            shortlist: None,
            own: OwnTools::new(toolbox.config()),
            index: OnceLock::new(),
            undescribed: Vec::new(),
        };
        let discovery = &toolbox.config().discovery;
        let pinned = discovery.pinned.value.iter().filter_map(|text| Glob::new(text).ok());
        let pinned: Vec<_> = pinned.collect();
        let is_pinned = |name: &str| pinned.iter().any(|glob| glob.matches(name));
        let mut tokens = 0;
        for known in toolbox.known_tools() {
            match known {
                Ok(KnownTool { tool, may_say_more }) => {
                    if let Some(problem) = &tool.description_problem {
                        let problem = printable(problem);
                        tracing::warn!(
                            "the description of `{}` cannot be used: {problem}",
                            tool.name
                        );
                    }
                    if let Some(problem) = &tool.output_problem {
                        tracing::warn!(
                            "the output schema of `{}` is omitted, because it cannot be used: {}",
                            tool.name,
                            printable(problem)
                        );
                    }
                    if let Err(error) = tool.check_schema_forms() {
                        tracing::error!("`{}` is omitted: {error}", tool.name);
                        continue;
                    }
                    let Definition { value, losses } = Format::Mcp.define(&tool);
                    for loss in losses {
                        tracing::warn!("{loss}");
                    }
                    tokens += estimated_tokens(&value.to_string());
                    match serde_json::from_value::<model::Tool>(value) {
                        Ok(mut definition) => {
                            let is_pinned = is_pinned(tool.name.as_str());
                            definition.meta = Some(hints(toolbox, &tool, is_pinned));
                            catalog.tools.push(definition);
                        }
                        Err(error) => {
                            tracing::error!("the tool `{}` is omitted: {error}", tool.name);
                        }
                    }
                    if may_say_more {
                        catalog.undescribed.push(tool.name.to_string());
                    }
                }
                Err(error) => tracing::error!("a tool is omitted: {error}"),
            }
        }
        let is_short = match discovery.mode.value {
            DiscoveryMode::All => false,
            DiscoveryMode::Search => true,
            DiscoveryMode::Auto => tokens > discovery.tool_tokens.value,
        };
        if is_short {
            let listed = catalog.tools.iter().filter(|tool| is_pinned(&tool.name)).cloned();
            let mut listed: Vec<_> =
                listed.chain(discovery::search_tools(&catalog.own, catalog.tools.len())).collect();
            listed.sort_by(|one, other| one.name.cmp(&other.name));
            catalog.shortlist = Some(listed);
        }
        catalog
    }

    /// Returns the tools that a client lists.
    pub(crate) fn listed(&self) -> &[model::Tool] {
        self.shortlist.as_ref().unwrap_or(&self.tools)
    }

    /// Returns whether clients find tools by a search instead of a list of all.
    pub(crate) fn is_searched(&self) -> bool {
        self.shortlist.is_some()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&model::Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns the tools that fit a query best, the best first.
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<&model::Tool> {
        let index = self.index.get_or_init(|| {
            let schemas: Vec<_> =
                self.tools.iter().map(|tool| Value::Object((*tool.input_schema).clone())).collect();
            let searched = self.tools.iter().zip(&schemas).map(|(tool, schema)| SearchedTool {
                name: &tool.name,
                title: tool.title.as_deref(),
                description: tool.description.as_deref(),
                input_schema: schema,
            });
            SearchIndex::new(searched)
        });
        index.search(query, limit).into_iter().map(|at| &self.tools[at]).collect()
    }
}

/// Returns hints that some clients read. They are not part of the definition for a model.
fn hints(toolbox: &Toolbox, tool: &Tool, is_pinned: bool) -> model::MetaObject {
    let mut hints = Map::new();
    let config = toolbox.config();
    let group = match &tool.source {
        ToolSource::Server(of) => Some(of.server.to_string()),
        _ => None,
    };
    let words: Vec<_> = tool.title.iter().map(|title| title.value.clone()).chain(group).collect();
    if !words.is_empty() {
        hints.insert(SEARCH_HINT.into(), words.join(", ").into());
    }
    if is_pinned {
        hints.insert(ALWAYS_LOAD.into(), true.into());
    }
    let size = config.discovery.result_size.value.as_u64().min(LARGEST_RESULT);
    hints.insert(RESULT_SIZE.into(), json!(size));
    if tool.approve.rules.iter().any(|rule| rule.value != ApprovalRule::Never) {
        hints.insert(USER_INTERACTION.into(), true.into());
    }
    model::MetaObject(hints)
}

/// Words for the search of a client that loads definitions when they are needed.
const SEARCH_HINT: &str = "anthropic/searchHint";

/// The definition is loaded in any case.
pub(crate) const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// The number of characters up to which a result is passed to the model, and the largest number
/// that clients accept.
const RESULT_SIZE: &str = "anthropic/maxResultSizeChars";
const LARGEST_RESULT: u64 = 500_000;

/// A call may need the approval of a person.
const USER_INTERACTION: &str = "anthropic/requiresUserInteraction";
