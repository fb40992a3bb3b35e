//! The tools as `tools/list` tells of them.

use std::sync::Arc;

use kitbag_toolbox::{KnownTool, Tool, Toolbox};
use rmcp::model::{self, JsonObject};
use serde_json::Value;

/// The tools of one toolbox, by name, as far as they are known without being
/// loaded.
pub(crate) struct Catalog {
    /// For clients of the stateless revisions.
    pub(crate) tools: Vec<model::Tool>,
    /// The names of those that may say more of themselves.
    pub(crate) untold: Vec<String>,
}

impl Catalog {
    /// Reads what is cached of local tools. Nothing is compiled.
    pub(crate) fn of(toolbox: &Toolbox) -> Self {
        let mut catalog = Self { tools: Vec::new(), untold: Vec::new() };
        for known in toolbox.known_tools() {
            match known {
                Ok(KnownTool { tool, may_say_more }) => {
                    catalog.tools.push(definition(&tool));
                    if may_say_more {
                        catalog.untold.push(tool.name.to_string());
                    }
                }
                Err(error) => tracing::error!("a tool is left out: {error}"),
            }
        }
        catalog
    }
}

/// A tool as the protocol has it.
fn definition(tool: &Tool) -> model::Tool {
    let description = tool.description.as_ref().map(|text| text.value.clone().into());
    let mut definition = model::Tool::new_with_raw(
        tool.name.to_string(),
        description,
        object(&tool.input_schema.value),
    );
    definition.title = tool.title.as_ref().map(|text| text.value.clone());
    definition.output_schema = tool.output_schema.as_ref().map(|schema| object(&schema.value));
    let hints = &tool.annotations;
    definition.annotations = Some(model::ToolAnnotations::from_raw(
        None,
        hints.read_only_hint,
        hints.destructive_hint,
        hints.idempotent_hint,
        hints.open_world_hint,
    ));
    definition
}

/// A schema as it is; what is no object is no schema that the protocol could
/// carry, so any object takes its place.
fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_else(|| {
        let mut any = JsonObject::new();
        any.insert("type".into(), "object".into());
        any
    }))
}

/// Leaves out what a client of the revisions with a handshake would refuse: an
/// output schema that is not one of an object.
pub(crate) fn for_handshake(mut tool: model::Tool) -> model::Tool {
    let describes_object =
        |schema: &Arc<JsonObject>| schema.get("type").and_then(Value::as_str) == Some("object");
    tool.output_schema = tool.output_schema.filter(describes_object);
    tool
}
