//! What a model reads of the tools. Every word costs tokens in every conversation.

use kitbag_sdk::Description;
use kitbag_workspace::reading;
use serde_json::{Value, json};

use crate::write::ANSWER_BYTES;

/// Any JSON value. Some clients accept a property without a type, or with several, only with a
/// warning.
fn any() -> Value {
    let types = ["object", "array", "string", "number", "boolean", "null"];
    json!({ "anyOf": types.map(|name| json!({ "type": name })) })
}

/// All tools.
pub(crate) fn tools() -> [Description; 4] {
    // Without an output schema: structured content has numbers of 64 bits, a document longer
    // ones.
    let query = described(
        "query_data",
        "Query data",
        "Get parts of a JSON, YAML, TOML, CSV or .jsonl file, or of text, by JSONPath (begins \
         with $) or jq (jaq). Rows of CSV and .jsonl are queried one by one. Example: \
         {\"path\":\"package.json\",\"query\":\"$.scripts.*\"}. jq has no `input`; its decimals are \
         binary floats.",
        json!({
            "query": { "type": "string" },
            "limit": { "type": "integer", "minimum": 1, "maximum": 10_000, "default": 100 },
            "offset": { "type": "integer", "minimum": 0, "default": 0 },
            "max_bytes": max_bytes(),
        }),
        &["query"],
    );
    let validate = described(
        "validate_data",
        "Validate data",
        "Check a JSON, YAML, TOML, CSV or .jsonl file, or text, against a JSON Schema (2020-12), \
         row by row for CSV and .jsonl. Answers each error with its place. Example: \
         {\"path\":\"a.yaml\",\"schema_path\":\"a.schema.json\"}.",
        json!({
            "schema_path": { "type": "string" },
            "schema": { "type": "object" },
            "refs": { "type": "object", "description": "URL of a $ref to its file or schema" },
        }),
        &[],
    )
    .output_schema(object(
        json!({
            "valid": { "type": "boolean" },
            "errors": { "type": "array", "items": object(
                json!({
                    "pointer": { "type": "string" },
                    "line": { "type": "integer" },
                    "column": { "type": "integer" },
                    "message": { "type": "string" },
                    "schema": { "type": "string" },
                }),
                &["pointer", "line", "column", "message", "schema"],
            ) },
            "left_out": { "type": "integer" },
            "notes": { "type": "array", "items": { "type": "string" } },
        }),
        &["valid", "errors"],
    ));
    let patch = described(
        "patch_data",
        "Patch data",
        "Answer a JSON, YAML, TOML, CSV or .jsonl file, or text, as JSON after a JSON Patch \
         (`patch`) or a JSON Merge Patch (`merge`). Changes no file. Example: {\"path\":\"a.json\",\"patch\":[{\"op\":\"remove\",\
         \"path\":\"/b\"}]}.",
        json!({ "patch": { "type": "array", "items": { "type": "object" } }, "merge": any(), "max_bytes": max_bytes() }),
        &[],
    );
    let convert = described(
        "convert_data",
        "Convert data",
        "Answer a JSON, YAML, TOML, CSV or .jsonl file, or text, in another format. CSV has a \
         header; `offset` and `limit` choose its rows, lines of .jsonl or items of an array. Example: \
         {\"path\":\"a.csv\",\"to\":\"json\"}.",
        json!({
            "to": format("Of the answer"),
            "delimiter": { "type": "string", "description": "Of CSV. Default: guessed" },
            "offset": { "type": "integer", "minimum": 0, "default": 0 },
            "limit": { "type": "integer", "minimum": 1 },
            "max_bytes": max_bytes(),
        }),
        &["to"],
    );
    [query, validate, patch, convert]
}

fn described(name: &str, title: &str, text: &str, own: Value, required: &[&str]) -> Description {
    let mut properties = json!({
        "path": { "type": "string" },
        "text": { "type": "string" },
        "from": format("Of `path` or `text`. Default: by the extension, else json"),
    });
    if let (Value::Object(all), Value::Object(own)) = (&mut properties, own) {
        all.extend(own);
    }
    reading(name, title, text, properties, required)
}

fn max_bytes() -> Value {
    json!({ "type": "integer", "minimum": 1, "default": ANSWER_BYTES })
}

fn format(of_what: &str) -> Value {
    let formats = ["json", "yaml", "toml", "csv", "jsonl"];
    json!({ "type": "string", "enum": formats, "description": of_what })
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}
