//! `validate_data`: JSON Schema.

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, ValidationOptions, Validator};
use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::format::Format;
use crate::notes::Notes;
use crate::shown;
use crate::source::Source;
use crate::write::ANSWER_BYTES;

/// How many errors are shown.
const ERRORS: usize = 20;

/// How much a pattern may take when it is compiled.
const PATTERN_BYTES: usize = 1 << 20;

/// What `validate_data` takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: Option<String>,
    text: Option<String>,
    from: Option<Format>,
    schema_path: Option<String>,
    schema: Option<Map<String, Value>>,
}

/// The errors that were found.
#[derive(Default)]
struct Found {
    errors: Vec<Value>,
    /// How long those are as JSON.
    bytes: usize,
    left_out: u64,
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
        let mut notes = Notes::default();
        Ok(Source::file(&path).read(&self.0, &mut notes).map_err(|error| error.message)?)
    }
}

/// Runs a call.
pub(crate) fn run(call: &Call, arguments: &Arguments) -> Result<String, ErrorInfo> {
    let mut notes = Notes::default();
    let (schema, base) = match (&arguments.schema, &arguments.schema_path) {
        (Some(schema), None) => (Value::Object(schema.clone()), None),
        (None, Some(path)) => (Source::file(path).read(call, &mut notes)?, Some(path)),
        _ => return Err(ErrorInfo::new("give either `schema_path` or `schema`")),
    };
    let validator = compile(call, &schema, base.map(String::as_str))?;
    let (path, text) = (arguments.path.as_deref(), arguments.text.as_deref());
    let source = Source { path, text, from: arguments.from, delimiter: None };
    let mut found = Found::default();
    source.each(call, &mut notes, &mut |document| {
        found.check(&validator, &document);
        Ok(true)
    })?;
    let Found { errors, left_out, .. } = found;
    let is_valid = errors.is_empty() && left_out == 0;
    let mut answer = json!({ "valid": is_valid, "errors": errors });
    if left_out > 0 {
        answer["left_out"] = json!(left_out);
    }
    let notes = notes.sentences();
    if !notes.is_empty() {
        answer["notes"] = json!(notes);
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
        let at = shown::value(error.instance_path().as_str());
        ErrorInfo::new(format!(
            "the schema cannot be used: {} (in `{at}`)",
            shown::message(&error.to_string())
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

impl Found {
    /// Adds the errors of a document.
    fn check(&mut self, validator: &Validator, document: &Document<'_>) {
        for error in validator.iter_errors(&document.value) {
            if self.errors.len() == ERRORS {
                self.left_out += 1;
                continue;
            }
            let pointer = error.instance_path().as_str();
            let (line, column) = document.place(pointer);
            let shown = json!({
                "pointer": shown::pointer(pointer),
                "line": line,
                "column": column,
                "message": shown::message(&error.to_string()),
                "schema": shown::pointer(error.schema_path().as_str()),
            });
            let bytes = self.bytes + shown.to_string().len();
            if bytes > ANSWER_BYTES {
                self.left_out += 1;
                continue;
            }
            self.bytes = bytes;
            self.errors.push(shown);
        }
    }
}
