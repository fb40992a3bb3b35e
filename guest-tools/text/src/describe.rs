//! What the tools say about themselves.

use kitbag_sdk::serde_json::Value;
use kitbag_sdk::{Description, json};
use kitbag_workspace::reading;

/// Describes all tools of the component.
pub(crate) fn describe() -> Description {
    let text = json!({ "type": "string" });
    Description::tools([
        tool(
            "html_to_markdown",
            "HTML to Markdown",
            "Read an HTML page (`path` or `text`) as Markdown: its main content with tables.",
            source(json!({
                "base": { "type": "string", "description": "URL of the page: makes links absolute" },
                "main": {
                    "type": "boolean",
                    "default": true,
                    "description": "false: all of it, also navigation and hidden parts",
                },
                "max_bytes": { "type": "integer", "minimum": 1, "default": 40_000 },
                "offset": { "type": "integer", "minimum": 0, "default": 0 },
            })),
            &[],
        ),
        tool(
            "diff_text",
            "Compare texts",
            "Compare two texts or files as a unified diff.",
            json!({
                "old": text,
                "old_path": text,
                "new": text,
                "new_path": text,
                "context": { "type": "integer", "minimum": 0, "default": 3 },
                "max_bytes": { "type": "integer", "minimum": 1, "default": 40_000 },
            }),
            &[],
        ),
        tool(
            "count_text",
            "Count text",
            "Count lines, words, characters, bytes and tokens.",
            source(json!({})),
            &[],
        )
        .output_schema(counts()),
        tool(
            "hash_text",
            "Hash text",
            "Hash the bytes of a text or file, in hex.",
            source(json!({ "algorithm": { "enum": crate::hash::NAMES, "default": "sha256" } })),
            &[],
        ),
        tool(
            "encode_text",
            "Encode text",
            "Encode a text or the bytes of a file.",
            source(json!({ "encoding": { "enum": crate::code::NAMES } })),
            &["encoding"],
        ),
        tool(
            "decode_text",
            "Decode text",
            "Decode what is encoded so.",
            source(json!({ "encoding": { "enum": crate::code::NAMES } })),
            &["encoding"],
        ),
    ])
}

/// The arguments of a tool that takes a text or the path of a file.
fn source(mut properties: Value) -> Value {
    properties["text"] = json!({ "type": "string" });
    properties["path"] = json!({ "type": "string" });
    properties
}

fn tool(
    name: &str,
    title: &str,
    description: &str,
    properties: Value,
    required: &[&str],
) -> Description {
    reading(name, title, description, properties, required).annotations(json!({
        "readOnlyHint": true,
        "idempotentHint": true,
        "openWorldHint": false,
    }))
}

/// The schema of what `count_text` answers.
fn counts() -> Value {
    let integer = |description: &str| json!({ "type": "integer", "description": description });
    json!({
        "type": "object",
        "properties": {
            "lines": integer("Also a last line without a line break"),
            "words": integer("Parts between white space"),
            "characters": integer("Unicode scalar values"),
            "bytes": integer("Of the file, or of the text as UTF-8"),
            "tokens_o200k_estimated": integer(
                "Estimated for o200k_base, the tokenizer of GPT-4o and later; other models \
                 differ, mostly by less than a third"
            ),
            "encoding": { "type": "string", "description": "Of a file that is not UTF-8" },
        },
        "required": ["lines", "words", "characters", "bytes", "tokens_o200k_estimated"],
        "additionalProperties": false,
    })
}
