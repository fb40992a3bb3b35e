//! What tools that work on files say about themselves.

use kitbag_sdk::serde_json::Value;
use kitbag_sdk::{Description, json};

/// Begins the description of a tool that reads the workspace and changes nothing: its title for
/// people, the text for models, its [arguments](Description::arguments), the hints and the grant.
pub fn reading(
    name: &str,
    title: &str,
    description: &str,
    properties: Value,
    required: &[&str],
) -> Description {
    Description::new(name)
        .title(title)
        .description(description)
        .arguments(properties, required)
        .annotations(json!({ "readOnlyHint": true, "openWorldHint": false }))
        .grants(json!({ "filesystem": [{ "guest": "/workspace", "mode": "ro" }] }))
}
