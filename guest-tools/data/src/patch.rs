//! `patch_data`: JSON Patch of RFC 6902, and JSON Merge Patch of RFC 7396.

use json_patch::{PatchErrorKind, PatchOperation};
use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use serde_json::Value;

use crate::format::Format;
use crate::source::Source;

/// What `patch_data` takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: Option<String>,
    text: Option<String>,
    from: Option<Format>,
    patch: Option<Vec<Value>>,
    merge: Option<Value>,
}

/// Runs a call. No file is changed: the answer is the document as it would be.
pub(crate) fn run(call: &Call, arguments: Arguments) -> Result<String, ErrorInfo> {
    let Arguments { path, text, from, patch, merge } = arguments;
    let (path, text) = (path.as_deref(), text.as_deref());
    let source = Source { path, text, from, delimiter: None };
    let mut document = source.read(call)?;
    match (patch, merge) {
        (Some(operations), None) => apply(&mut document, operations)?,
        (None, Some(merge)) => json_patch::merge(&mut document, &merge),
        _ => return Err(ErrorInfo::new("give either `patch` or `merge`")),
    }
    Ok(format!("{document:#}"))
}

/// Applies all operations, or none.
fn apply(document: &mut Value, operations: Vec<Value>) -> Result<(), ErrorInfo> {
    let mut patch = Vec::new();
    for (index, operation) in operations.into_iter().enumerate() {
        let shown = operation.to_string();
        let operation: PatchOperation = serde_json::from_value(operation).map_err(|error| {
            ErrorInfo::new(format!("`/patch/{index}` is no operation: {error}: {shown}"))
        })?;
        patch.push(operation);
    }
    json_patch::patch(document, &patch).map_err(|error| {
        let (index, operation) = (error.operation, &patch[error.operation]);
        let at = match error.kind {
            PatchErrorKind::InvalidFromPointer => "what `from` names does not exist",
            PatchErrorKind::InvalidPointer => "what `path` names does not exist",
            PatchErrorKind::TestFailed => "the value is another one",
            PatchErrorKind::CannotMoveInsideItself => "a value cannot be moved into itself",
            _ => "it cannot be applied",
        };
        ErrorInfo::new(format!("`/patch/{index}` failed: {at}: {}", json(operation)))
    })
}

fn json(operation: &PatchOperation) -> String {
    serde_json::to_string(operation).unwrap_or_default()
}
