//! What a model reads of the tools. Every word costs tokens in every conversation.

use kitbag_sdk::serde_json::Value;
use kitbag_sdk::{Description, json};
use kitbag_workspace::reading;

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
    reading(
        "search_files",
        "Search in files",
        "Search what is in files, as ripgrep does: not in hidden, ignored (.gitignore) and binary \
         files. Answers each path with its matching lines, `12:text`. Example: \
         {\"pattern\":\"fn main\",\"types\":[\"rust\"]}. For names of files use find_files.",
        properties,
        &["pattern"],
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
    reading(
        "find_files",
        "Find files",
        "Find files by name in a whole tree, without hidden and ignored ones. Answers paths, one \
         a line. Example: {\"globs\":[\"*test*.py\"],\"newest\":true}.",
        properties,
        &[],
    )
}

fn list(examples: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": examples })
}
