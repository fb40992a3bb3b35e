//! What the tools say about themselves.

use kitbag_sdk::serde_json::{Map, Value};
use kitbag_sdk::{Description, json};

/// Describes all tools of the component.
pub(crate) fn describe() -> Description {
    let text = json!({ "type": "string" });
    let source = |more: &[(&'static str, Value)]| {
        let own = [("text", text.clone()), ("path", json!({ "type": "string" }))];
        own.into_iter().chain(more.iter().cloned()).collect::<Vec<_>>()
    };
    Description::tools([
        tool(
            "html_to_markdown",
            "Read an HTML page (`path` or `text`) as Markdown: its main content with tables.",
            &source(&[
                (
                    "base",
                    json!({ "type": "string", "description": "URL of the page: makes links absolute" }),
                ),
                (
                    "main",
                    json!({
                        "type": "boolean",
                        "default": true,
                        "description": "false: with navigation, header and footer",
                    }),
                ),
                ("max_bytes", json!({ "type": "integer", "minimum": 1, "default": 40_000 })),
                ("offset", json!({ "type": "integer", "minimum": 0, "default": 0 })),
            ]),
            &[],
        ),
        tool(
            "diff_text",
            "Compare two texts or files as a unified diff.",
            &[
                ("old", text.clone()),
                ("old_path", text.clone()),
                ("new", text.clone()),
                ("new_path", text.clone()),
                ("context", json!({ "type": "integer", "minimum": 0, "default": 3 })),
                ("max_bytes", json!({ "type": "integer", "minimum": 1, "default": 40_000 })),
            ],
            &[],
        ),
        tool("count_text", "Count lines, words, characters, bytes and tokens.", &source(&[]), &[])
            .output_schema(counts()),
        tool(
            "hash_text",
            "Hash the bytes of a text or file, in hex.",
            &source(&[("algorithm", json!({ "enum": crate::hash::NAMES, "default": "sha256" }))]),
            &[],
        ),
        tool(
            "encode_text",
            "Encode a text or the bytes of a file.",
            &source(&[("encoding", json!({ "enum": crate::code::NAMES }))]),
            &["encoding"],
        ),
        tool(
            "decode_text",
            "Decode what is encoded so.",
            &source(&[("encoding", json!({ "enum": crate::code::NAMES }))]),
            &["encoding"],
        ),
    ])
}

fn tool(
    name: &str,
    description: &str,
    properties: &[(&str, Value)],
    required: &[&str],
) -> Description {
    let properties: Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Description::new(name)
        .description(description)
        .input_schema(schema)
        .annotations(json!({
            "readOnlyHint": true,
            "idempotentHint": true,
            "openWorldHint": false,
        }))
        .grants(json!({ "filesystem": [{ "guest": "/workspace", "mode": "ro" }] }))
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
