//! What a tool gave besides its text, in a sentence for a person.

use kitbag::Content;
use kitbag::contract::text::shown;
use kitbag::contract::{ByteSize, ResourceBody};

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
