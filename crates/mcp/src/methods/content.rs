//! Content that a tool emitted in addition to its text, as content blocks.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kitbag_contract::{Content, ResourceBody};
use rmcp::model::{ContentBlock, Resource, ResourceContents};

pub(crate) fn content_block(content: &Content) -> ContentBlock {
    match content {
        Content::Image(media) => {
            ContentBlock::image(BASE64_STANDARD.encode(&media.data), &media.mime_type)
        }
        Content::Audio(media) => {
            ContentBlock::audio(BASE64_STANDARD.encode(&media.data), &media.mime_type)
        }
        Content::Resource(resource) => {
            let contents = match &resource.body {
                ResourceBody::Text(text) => ResourceContents::text(text, &resource.uri),
                ResourceBody::Blob(data) => {
                    ResourceContents::blob(BASE64_STANDARD.encode(data), &resource.uri)
                }
            };
            ContentBlock::resource(match &resource.mime_type {
                Some(mime_type) => contents.with_mime_type(mime_type),
                None => contents,
            })
        }
        Content::Link(link) => {
            let mut resource = Resource::new(&link.uri, &link.name);
            resource.title.clone_from(&link.title);
            resource.description.clone_from(&link.description);
            resource.mime_type.clone_from(&link.mime_type);
            resource.size = link.size;
            ContentBlock::resource_link(resource)
        }
    }
}
