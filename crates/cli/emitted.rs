//! What a tool gave besides its text: as JSON for a program, in a sentence for a
//! person.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kitbag::Content;
use kitbag::contract::text::shown;
use kitbag::contract::{ByteSize, Media, ResourceBody, ResourceLink};
use serde_json::{Value, json};

/// The content block that the Model Context Protocol has for it.
pub(crate) fn block(content: &Content) -> Value {
    let media = |ty: &str, media: &Media| json!({ "type": ty, "data": STANDARD.encode(&media.data), "mimeType": media.mime_type });
    match content {
        Content::Image(image) => media("image", image),
        Content::Audio(audio) => media("audio", audio),
        Content::Resource(resource) => {
            let mut object = json!({ "uri": resource.uri });
            set(&mut object, "mimeType", resource.mime_type.clone());
            match &resource.body {
                ResourceBody::Text(text) => set(&mut object, "text", Some(text.clone())),
                ResourceBody::Blob(data) => set(&mut object, "blob", Some(STANDARD.encode(data))),
            }
            json!({ "type": "resource", "resource": object })
        }
        Content::Link(ResourceLink { uri, name, title, description, mime_type, size }) => {
            let mut object = json!({ "type": "resource_link", "uri": uri, "name": name });
            set(&mut object, "title", title.clone());
            set(&mut object, "description", description.clone());
            set(&mut object, "mimeType", mime_type.clone());
            set(&mut object, "size", *size);
            object
        }
    }
}

/// What a person is told who sees only the text.
pub(crate) fn sentence(content: &Content) -> String {
    let size = |data: &[u8]| ByteSize::bytes(data.len() as u64);
    let what = match content {
        Content::Image(media) => {
            format!("an image ({}, {})", shown(&media.mime_type), size(&media.data))
        }
        Content::Audio(media) => {
            format!("a sound ({}, {})", shown(&media.mime_type), size(&media.data))
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
    format!("the tool also gave {what}; --json prints it")
}

/// Sets a key where there is a value.
fn set(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object[key] = value.into();
    }
}
