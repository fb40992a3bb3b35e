//! Content that a tool emitted in addition to its text: a sentence for a person, JSON for a
//! program.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kitbag::Content;
use kitbag::base::ByteSize;
use kitbag::base::text::shown;
use kitbag::contract::{Media, ResourceBody};
use serde_json::{Value, json};

/// The name of the document with notes on the output.
const NOTES: &str = "kitbag:notes";

/// Returns the line that represents the content if only text is shown.
pub(crate) fn sentence(content: &Content) -> String {
    let size = |data: &[u8]| ByteSize::bytes(data.len() as u64);
    let what = match content {
        Content::Image(media) => {
            format!("an image ({}, {})", shown(&media.mime_type), size(&media.data))
        }
        Content::Audio(media) => {
            format!("audio ({}, {})", shown(&media.mime_type), size(&media.data))
        }
        Content::Resource(resource) => {
            let size = match &resource.body {
                ResourceBody::Text(text) => size(text.as_bytes()),
                ResourceBody::Blob(data) => size(data),
            };
            format!("a document ({}, {size})", shown(&resource.uri))
        }
        Content::Link(link) => format!("a link ({})", shown(&link.uri)),
    };
    format!("the tool also returned {what}")
}

/// Returns a tool's notes on its output, which built-ins emit separately.
pub(crate) fn notes(content: &Content) -> Option<String> {
    let Content::Resource(resource) = content else { return None };
    let ResourceBody::Text(text) = &resource.body else { return None };
    let notes = text.lines().map(|line| format!("note of the tool: {}", shown(line)));
    (resource.uri == NOTES).then(|| notes.collect::<Vec<_>>().join("\n"))
}

/// Returns the JSON of content that was saved: the path in place of the content.
pub(crate) fn saved_json(content: &Content, path: &Path) -> Value {
    let mut value = json(content);
    let contents = match content {
        Content::Resource(_) => &mut value["resource"],
        _ => &mut value,
    };
    if let Value::Object(fields) = contents {
        fields.retain(|key, _| !matches!(&**key, "data" | "text" | "blob"));
    }
    value["file"] = path.to_string_lossy().into();
    value
}

/// Returns content as an MCP content block, also in a binary without the server.
///
/// Source: Model Context Protocol 2025-11-25, `ContentBlock`.
pub(crate) fn json(content: &Content) -> Value {
    let media = |kind: &str, media: &Media| {
        let data = BASE64_STANDARD.encode(&media.data);
        json!({ "type": kind, "data": data, "mimeType": media.mime_type })
    };
    match content {
        Content::Image(image) => media("image", image),
        Content::Audio(sound) => media("audio", sound),
        Content::Resource(resource) => {
            let mut contents = json!({ "uri": resource.uri, "mimeType": resource.mime_type });
            match &resource.body {
                ResourceBody::Text(text) => contents["text"] = json!(text),
                ResourceBody::Blob(data) => contents["blob"] = BASE64_STANDARD.encode(data).into(),
            }
            json!({ "type": "resource", "resource": without_nulls(contents) })
        }
        Content::Link(link) => without_nulls(json!({
            "type": "resource_link",
            "uri": link.uri,
            "name": link.name,
            "title": link.title,
            "description": link.description,
            "mimeType": link.mime_type,
            "size": link.size,
        })),
    }
}

/// Removes the fields without a value.
fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !field.is_null());
    }
    value
}
