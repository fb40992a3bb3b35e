//! `validate_data`: JSON Schema.

use fancy_regex::RegexBuilder;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{
    Draft, PatternOptions, ReferencingError, Retrieve, Uri, ValidationOptions, Validator,
};
use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::excerpt;
use crate::format::Format;
use crate::notes::Notes;
use crate::source::Source;
use crate::write::ANSWER_BYTES;

/// Maximum number of displayed errors.
const ERRORS: usize = 20;

/// Maximum size of a compiled pattern in bytes.
const PATTERN_BYTES: usize = 4 << 20;

/// Maximum number of backtracking steps of a pattern with look-around or a back-reference.
const PATTERN_STEPS: usize = 100_000;

/// The arguments of `validate_data`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: Option<String>,
    text: Option<String>,
    from: Option<Format>,
    schema_path: Option<String>,
    schema: Option<Map<String, Value>>,
    /// The schemas for URLs in `$ref`, each given as a path or a schema.
    #[serde(default)]
    refs: Map<String, Value>,
}

/// The errors that were found.
#[derive(Default)]
struct Found {
    errors: Vec<Value>,
    /// The length of the errors as JSON.
    bytes: usize,
    left_out: u64,
}

/// Finds the schemas that a schema refers to: in the arguments, or in files that the call may read.
/// Nothing is downloaded.
struct References {
    call: Call,
    given: Map<String, Value>,
    /// The directory of the schema.
    directory: String,
}

impl Retrieve for References {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        if uri.scheme().as_str() == "file" {
            let path = uri.path().decode().to_string().map_err(|_| "its path is not UTF-8")?;
            return Ok(self.file(&path)?);
        }
        let given = self.given.iter().find(|(url, _)| is_same(url, uri.as_str()));
        match given {
            Some((_, Value::String(path))) => return Ok(self.file(path)?),
            Some((_, schema)) => {
                let mut schema = schema.clone();
                escape_references(&mut schema);
                return Ok(schema);
            }
            None => {}
        }
        // A copy next to the schema, which declares its own id.
        let name = uri.path().as_str().rsplit('/').next().unwrap_or_default();
        let is_name = |name: &str| !name.is_empty() && !name.starts_with('.');
        let names = [name.to_owned(), format!("{name}.json"), format!("{name}.schema.json")];
        for name in names.iter().filter(|name| is_name(name)) {
            let Ok(schema) = self.file(&format!("{}/{name}", self.directory)) else { continue };
            let id = schema.get("$id").or_else(|| schema.get("id")).and_then(Value::as_str);
            if id.is_some_and(|id| is_same(id, uri.as_str())) {
                return Ok(schema);
            }
        }
        Err("schemas are not fetched: name its file in `refs`, or put a copy with that `$id` next \
             to the schema"
            .into())
    }
}

impl References {
    fn file(&self, path: &str) -> Result<Value, String> {
        let source = Source::file(path);
        let mut schema =
            source.read(&self.call, &mut Notes::default()).map_err(|error| error.message)?;
        escape_references(&mut schema);
        Ok(schema)
    }
}

/// Escapes characters in each `$ref` that are invalid in URIs, such as `<` in the name of a
/// definition.
fn escape_references(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(escape_references),
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        for char in ['<', '>', '|', '"', '{', '}', '^', '`', '\\', ' '] {
                            let code = format!("%{:02X}", u32::from(char));
                            *reference = reference.replace(char, &code);
                        }
                    }
                    value => escape_references(value),
                }
            }
        }
        _ => {}
    }
}

/// Returns true if two URLs name the same schema.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |url: &str| {
        let url = url.trim_end_matches('#');
        let url = url.strip_prefix("https:").or_else(|| url.strip_prefix("http:")).unwrap_or(url);
        url.replacen("//www.", "//", 1)
    };
    plain(one) == plain(other)
}

/// Runs a call.
pub(crate) fn run(call: &Call, arguments: &Arguments) -> Result<String, ErrorInfo> {
    let mut notes = Notes::default();
    let (mut schema, base) = match (&arguments.schema, &arguments.schema_path) {
        (Some(schema), None) => (Value::Object(schema.clone()), None),
        (None, Some(path)) => (Source::file(path).read(call, &mut notes)?, Some(path)),
        _ => return Err(ErrorInfo::new("pass either `schema_path` or `schema`")),
    };
    escape_references(&mut schema);
    let validator = compile(call, &schema, base.map(String::as_str), &arguments.refs)?;
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

/// Compiles a schema: as draft 2020-12 unless it names another draft.
fn compile(
    call: &Call,
    schema: &Value,
    path: Option<&str>,
    refs: &Map<String, Value>,
) -> Result<Validator, ErrorInfo> {
    let base = path.map_or_else(|| call.path("schema.json"), |path| call.path(path));
    let directory = base.rsplit_once('/').map_or_else(String::new, |(before, _)| before.to_owned());
    let references = References { call: call.clone(), given: refs.clone(), directory };
    let mut options =
        options().with_retriever(references).with_base_uri(format!("file://{}", escaped(&base)));
    if schema.get("$schema").is_none() {
        options = options.with_draft(Draft::Draft202012);
    }
    options.build(schema).map_err(|error| {
        let at = match error.instance_path().as_str() {
            "" => String::new(),
            pointer => format!(" (in `{}`)", excerpt::value(pointer)),
        };
        let is_pattern =
            matches!(error.kind(), ValidationErrorKind::Format { format } if format == "regex");
        let what = match error.instance().as_str() {
            Some(pattern) if is_pattern => excerpt::message(&wrong_pattern(pattern)),
            _ => match error.kind() {
                ValidationErrorKind::Referencing(error) => unresolved(error),
                _ => excerpt::message(&error.to_string()),
            },
        };
        ErrorInfo::new(format!("the schema cannot be used: {what}{at}"))
    })
}

/// Explains why a reference cannot be resolved.
fn unresolved(error: &ReferencingError) -> String {
    match error {
        ReferencingError::Unretrievable { uri, source } => {
            let why = excerpt::message(&source.to_string());
            format!("`$ref` to `{}`: {why}", excerpt::value(uri))
        }
        ReferencingError::PointerToNowhere { pointer } => {
            format!("`$ref` to `{}`, which does not exist in it", excerpt::value(pointer))
        }
        error => excerpt::message(&error.to_string()),
    }
}

/// Explains why a pattern cannot be used.
fn wrong_pattern(pattern: &str) -> String {
    let regex = RegexBuilder::new(pattern)
        .delegate_size_limit(PATTERN_BYTES)
        .delegate_dfa_size_limit(PATTERN_BYTES)
        .build();
    let shown = format!("`{}`", excerpt::value(pattern));
    match regex.map_err(|error| error.to_string()) {
        Err(error) if error.contains("size limit") || error.contains("building NFA") => format!(
            "the pattern {shown} takes more than {} MiB: large repetitions such as `{{1,9999}}` \
             are not supported; `maxLength` limits a length",
            PATTERN_BYTES >> 20
        ),
        Err(error) => format!("the pattern {shown} is not supported: {error}"),
        Ok(_) => format!("the pattern {shown} is not a regular expression of ECMA-262"),
    }
}

/// Returns the options for every schema. The time of a pattern is limited by the length of the
/// text, or by the number of backtracking steps if it has look-around or a back-reference.
pub(crate) fn options<'a>() -> ValidationOptions<'a> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(PATTERN_STEPS)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES);
    jsonschema::options().with_pattern_options(patterns)
}

/// Escapes a path for a URI.
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
            let message = match error.kind() {
                ValidationErrorKind::BacktrackLimitExceeded { .. } => format!(
                    "the pattern backtracked more than {PATTERN_STEPS} times, so the text was not \
                     checked: use fewer alternatives, look-arounds or back-references"
                ),
                _ => excerpt::message(&error.to_string()),
            };
            let shown = json!({
                "pointer": excerpt::pointer(pointer),
                "line": line,
                "column": column,
                "message": message,
                "schema": excerpt::pointer(error.schema_path().as_str()),
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
