//! What a model reads of the tools. Every word costs tokens in every conversation.

use kitbag_sdk::serde_json::{Value, json};
use kitbag_sdk::{Description, json as object};

/// Both tools.
pub(crate) fn tools() -> [Description; 2] {
    [search_files(), find_files()]
}

fn search_files() -> Description {
    let properties = json!({
        "pattern": { "type": "string", "description": "Rust regex; \\n spans lines" },
        "literal": { "type": "boolean", "default": false },
        "path": { "type": "string", "default": "." },
        "globs": list("*.rs, !test/**"),
        "types": list("rust, !md"),
        "case": { "enum": ["smart", "sensitive", "insensitive"], "default": "smart" },
        "context": { "type": "integer", "maximum": 50, "default": 0 },
        "show": { "enum": ["lines", "files", "counts"], "default": "lines" },
        "hidden": { "type": "boolean", "default": false },
        "ignored": { "type": "boolean", "default": false },
        "newest": { "type": "boolean", "default": false },
        "limit": { "type": "integer", "default": 100 },
        "per_file": { "type": "integer", "default": 20 },
    });
    described("search_files", properties, &["pattern"]).description(
        "Search what is in files, as ripgrep does: not in hidden, ignored (.gitignore) and binary \
         files. Answers each path with its matching lines, `12:text`. Example: \
         {\"pattern\":\"fn main\",\"types\":[\"rust\"]}. For names of files use find_files.",
    )
}

fn find_files() -> Description {
    let properties = json!({
        "path": { "type": "string", "default": "." },
        "globs": list("*.rs, src/**/*.ts, !test/**"),
        "types": list("rust, !md"),
        "kind": { "enum": ["file", "directory", "any"], "default": "file" },
        "depth": { "type": "integer" },
        "hidden": { "type": "boolean", "default": false },
        "ignored": { "type": "boolean", "default": false },
        "newest": { "type": "boolean", "default": false },
        "limit": { "type": "integer", "default": 200 },
    });
    described("find_files", properties, &[]).description(
        "Find files by name in a whole tree, without hidden and ignored ones. Answers paths, one \
         a line. Example: {\"globs\":[\"*test*.py\"],\"newest\":true}.",
    )
}

fn list(examples: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": examples })
}

fn described(name: &str, properties: Value, required: &[&str]) -> Description {
    let mut schema = object!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Description::new(name)
        .input_schema(schema)
        .annotations(json!({ "readOnlyHint": true, "openWorldHint": false }))
        .grants(json!({ "filesystem": [{ "guest": "/workspace", "mode": "ro" }] }))
}
