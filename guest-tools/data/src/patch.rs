//! `patch_data`: JSON Patch of RFC 6902, and JSON Merge Patch of RFC 7396.

use std::slice;

use json_patch::{AddOperation, PatchErrorKind, PatchOperation, ReplaceOperation, TestOperation};
use kitbag_sdk::{Call, ErrorInfo};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Answer;
use crate::equal::equal;
use crate::excerpt;
use crate::format::Format;
use crate::notes::Notes;
use crate::source::Source;
use crate::write::{answer_bytes, write};

/// The arguments of `patch_data`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: Option<String>,
    text: Option<String>,
    from: Option<Format>,
    patch: Option<Vec<Value>>,
    /// `null` is also a merge patch.
    #[serde(default, deserialize_with = "present")]
    merge: Option<Value>,
    #[serde(default = "answer_bytes")]
    max_bytes: usize,
}

/// Runs a call. No file is changed: the answer is the changed document.
pub(crate) fn run(call: &Call, arguments: Arguments) -> Result<Answer, ErrorInfo> {
    let Arguments { path, text, from, patch, merge, max_bytes } = arguments;
    let (path, text) = (path.as_deref(), text.as_deref());
    let source = Source { path, text, from, delimiter: None };
    let mut notes = Notes::default();
    let mut document = source.read(call, &mut notes)?;
    match (patch, merge) {
        (Some(operations), None) => apply(&mut document, operations)?,
        (None, Some(merge)) => json_patch::merge(&mut document, &parsed(merge)),
        _ => return Err(ErrorInfo::new("pass either `patch` or `merge`")),
    }
    let text = write(Format::Json, &document, max_bytes).map_err(|_| {
        ErrorInfo::new(format!(
            "the result is longer than `max_bytes` {max_bytes}; raise it, or get a part: \
             `query_data` with a jq filter such as `.a.b |= 1 | .a` changes a document and returns \
             parts of it"
        ))
    })?;
    Ok(Answer { text, notes: notes.sentences() })
}

/// Deserializes a present value, which may be null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Parses a merge patch given as a string with the JSON of an object. A string as the whole
/// document is never intended.
fn parsed(merge: Value) -> Value {
    let object = match &merge {
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    };
    object.unwrap_or(merge)
}

/// Applies all operations, or none.
fn apply(document: &mut Value, operations: Vec<Value>) -> Result<(), ErrorInfo> {
    let mut patch = Vec::new();
    for (index, mut operation) in operations.into_iter().enumerate() {
        let shown = operation.to_string();
        // An operation is deserialized through a buffer, which cannot hold numbers of more than 64
        // bits.
        let given = operation.get_mut("value").map(Value::take).unwrap_or_default();
        let mut operation: PatchOperation = serde_json::from_value(operation).map_err(|error| {
            ErrorInfo::new(format!(
                "`/patch/{index}` is not an operation: {}: {}",
                excerpt::message(&error.to_string()),
                excerpt::value(&shown)
            ))
        })?;
        if let PatchOperation::Add(AddOperation { value, .. })
        | PatchOperation::Replace(ReplaceOperation { value, .. })
        | PatchOperation::Test(TestOperation { value, .. }) = &mut operation
        {
            *value = given;
        }
        patch.push(operation);
    }
    for (index, operation) in patch.iter().enumerate() {
        // No rollback is needed: after an error no document is returned.
        let applied = match operation {
            PatchOperation::Test(test) => match document.pointer(test.path.as_str()) {
                None => Err(PatchErrorKind::InvalidPointer),
                Some(value) if equal(value, &test.value) => Ok(()),
                Some(_) => Err(PatchErrorKind::TestFailed),
            },
            operation => json_patch::patch_unsafe(document, slice::from_ref(operation))
                .map_err(|error| error.kind),
        };
        applied.map_err(|kind| {
            let at = match kind {
                PatchErrorKind::InvalidFromPointer => "the value at `from` does not exist",
                PatchErrorKind::InvalidPointer => "the value at `path` does not exist",
                PatchErrorKind::TestFailed => "the value is different",
                PatchErrorKind::CannotMoveInsideItself => "a value cannot be moved into itself",
                _ => "it cannot be applied",
            };
            ErrorInfo::new(format!(
                "`/patch/{index}` failed: {at}: {}",
                excerpt::value(&json(operation))
            ))
        })?;
    }
    Ok(())
}

fn json(operation: &PatchOperation) -> String {
    serde_json::to_string(operation).unwrap_or_default()
}
