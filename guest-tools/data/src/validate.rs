//! `validate_data`: JSON Schema.

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, ValidationOptions, Validator};
use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::pointer;
use crate::source::{Source, Text, open, read_all};

/// How many errors are shown.
const ERRORS: usize = 20;

/// How much of a message is shown, in characters.
const MESSAGE_CHARACTERS: usize = 300;

/// How much a pattern may take when it is compiled.
const PATTERN_BYTES: usize = 1 << 20;

/// What `validate_data` takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: Option<String>,
    text: Option<String>,
    schema_path: Option<String>,
    schema: Option<Map<String, Value>>,
}

/// Reads what a schema refers to, where that is a file that the call may read.
struct Files(Call);

impl Retrieve for Files {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        if uri.scheme().as_str() != "file" {
            return Err("it is not in the workspace, and nothing is fetched".into());
        }
        let path = uri.path().decode().to_string().map_err(|_| "its path is not UTF-8")?;
        let bytes = open(&self.0, &path).and_then(|file| read_all(file, &path));
        let bytes = bytes.map_err(|error| error.message)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// Runs a call.
pub(crate) fn run(call: &Call, arguments: &Arguments) -> Result<String, ErrorInfo> {
    let (schema, base) = match (&arguments.schema, &arguments.schema_path) {
        (Some(schema), None) => (Value::Object(schema.clone()), None),
        (None, Some(path)) => {
            let source = Source { path: Some(path), text: None };
            (source.read(call, "schema")?.json()?, Some(path))
        }
        _ => return Err(ErrorInfo::new("give either `schema_path` or `schema`")),
    };
    let validator = compile(call, &schema, base.map(String::as_str))?;
    let source = Source { path: arguments.path.as_deref(), text: arguments.text.as_deref() };
    let (mut errors, mut left_out) = (Vec::new(), 0);
    source.each(call, &mut |text| {
        check(&validator, text, &mut errors, &mut left_out)?;
        Ok(true)
    })?;
    let is_valid = errors.is_empty();
    let mut answer = json!({ "valid": is_valid, "errors": errors });
    if left_out > 0 {
        answer["left_out"] = json!(left_out);
    }
    Ok(answer.to_string())
}

/// Reads a schema: of 2020-12, where it names no other.
fn compile(call: &Call, schema: &Value, path: Option<&str>) -> Result<Validator, ErrorInfo> {
    let base = path.map_or_else(|| call.path("schema.json"), |path| call.path(path));
    let mut options = options()
        .with_retriever(Files(call.clone()))
        .with_base_uri(format!("file://{}", escaped(&base)));
    if schema.get("$schema").is_none() {
        options = options.with_draft(Draft::Draft202012);
    }
    options.build(schema).map_err(|error| {
        let at = error.instance_path().to_string();
        ErrorInfo::new(format!(
            "the schema cannot be used: {} (in `{at}`)",
            cut(&error.to_string())
        ))
    })
}

/// How every schema is read: patterns take time in proportion to the text.
pub(crate) fn options<'a>() -> ValidationOptions<'a> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    jsonschema::options().with_pattern_options(patterns)
}

/// A path in a URI.
fn escaped(path: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    path.bytes().map(escape).collect()
}

fn check(
    validator: &Validator,
    text: &Text,
    errors: &mut Vec<Value>,
    left_out: &mut u64,
) -> Result<(), ErrorInfo> {
    let document = text.json()?;
    for error in validator.iter_errors(&document) {
        if errors.len() == ERRORS {
            *left_out += 1;
            continue;
        }
        let pointer = error.instance_path().to_string();
        let start = pointer::find(&text.text, &pointer).unwrap_or(0);
        let (line, column) = pointer::line_and_column(&text.text, start);
        let shown = json!({
            "pointer": pointer,
            "line": text.first_line + line - 1,
            "column": column,
            "message": cut(&error.to_string()),
            "schema": error.schema_path().to_string(),
        });
        errors.push(shown);
    }
    Ok(())
}

/// The beginning of a message, which may hold a whole document.
fn cut(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
