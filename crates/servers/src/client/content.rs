//! The result of a call, in kitbag's types.
#![expect(deprecated, reason = "logging is deprecated since 2026-07-28; older servers use it")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kitbag_contract::{Content, LogLevel, Media, Resource, ResourceBody, ResourceLink};
use rmcp::model::{CallToolResult, ContentBlock, LoggingLevel, ResourceContents};
use serde_json::Value;

use super::redaction::Redaction;
use crate::call::Answered;

/// Reads the result of a call. With `is_structured`, the text is the structured content, as the
/// tool's output schema promises it. Content that cannot be read is omitted and named in
/// [`Answered::omitted`].
pub(crate) fn answered(
    result: CallToolResult,
    is_structured: bool,
    redaction: &Redaction,
) -> Answered {
    let is_error = result.is_error == Some(true);
    let (mut texts, mut content, mut omitted) = (Vec::new(), Vec::new(), Vec::new());
    for item in result.content {
        match block(item, redaction) {
            Ok(Block::Text(text)) => texts.push(text),
            Ok(Block::Content(item)) => content.push(item),
            Err(reason) => omitted.push(reason),
        }
    }
    let structured = result.structured_content.filter(|_| !is_error);
    let text = match structured {
        Some(structured) if is_structured || texts.is_empty() => structured.to_string(),
        _ => joined(texts),
    };
    Answered { is_error, text: redaction.text(text), content, omitted }
}

/// Content of a server.
pub(crate) enum Block {
    Text(String),
    Content(Content),
}

/// Reads one content block, without the secrets of the server.
///
/// # Errors
///
/// The reason why the content is omitted.
pub(crate) fn block(block: ContentBlock, redaction: &Redaction) -> Result<Block, String> {
    let item = match block {
        ContentBlock::Text(text) => return Ok(Block::Text(redaction.text(text.text))),
        ContentBlock::Image(image) => {
            media(image.data, image.mime_type, redaction).map(Content::Image)
        }
        ContentBlock::Audio(audio) => {
            media(audio.data, audio.mime_type, redaction).map(Content::Audio)
        }
        ContentBlock::Resource(embedded) => resource(embedded.resource, redaction),
        ContentBlock::ResourceLink(link) => Ok(Content::Link(ResourceLink {
            uri: redaction.text(link.uri),
            name: redaction.text(link.name),
            title: link.title.map(|text| redaction.text(text)),
            description: link.description.map(|text| redaction.text(text)),
            mime_type: link.mime_type,
            size: link.size,
        })),
        _ => Err("content of an unknown kind".to_owned()),
    };
    item.and_then(checked).map(Block::Content)
}

/// Reads the contents of a resource, without the secrets of the server.
///
/// # Errors
///
/// The reason why the contents are omitted.
pub(crate) fn checked_resource(
    contents: ResourceContents,
    redaction: &Redaction,
) -> Result<Content, String> {
    resource(contents, redaction).and_then(checked)
}

fn checked(content: Content) -> Result<Content, String> {
    content.check().map(|()| content).map_err(|error| error.to_string())
}

/// Joins the text blocks of a result, each on lines of its own.
fn joined(mut texts: Vec<String>) -> String {
    match texts.len() {
        1 => texts.pop().unwrap_or_default(),
        _ => texts.join("\n"),
    }
}

fn media(data: String, mime_type: String, redaction: &Redaction) -> Result<Media, String> {
    Ok(Media { data: decoded(&data, redaction)?, mime_type })
}

fn resource(contents: ResourceContents, redaction: &Redaction) -> Result<Content, String> {
    let (uri, mime_type, body) = match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            (uri, mime_type, ResourceBody::Text(redaction.text(text)))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            (uri, mime_type, ResourceBody::Blob(decoded(&blob, redaction)?))
        }
        _ => return Err("a resource of an unknown kind".to_owned()),
    };
    Ok(Content::Resource(Resource { uri: redaction.text(uri), mime_type, body }))
}

fn decoded(data: &str, redaction: &Redaction) -> Result<Vec<u8>, String> {
    let bytes = STANDARD.decode(data).map_err(|_| "content that is not base64".to_owned())?;
    Ok(redaction.bytes(bytes))
}

pub(crate) fn log_level(level: LoggingLevel) -> LogLevel {
    match level {
        LoggingLevel::Debug => LogLevel::Debug,
        LoggingLevel::Info => LogLevel::Info,
        LoggingLevel::Notice => LogLevel::Notice,
        LoggingLevel::Warning => LogLevel::Warning,
        LoggingLevel::Error => LogLevel::Error,
        LoggingLevel::Critical => LogLevel::Critical,
        LoggingLevel::Alert => LogLevel::Alert,
        LoggingLevel::Emergency => LogLevel::Emergency,
    }
}

/// Returns the message of an error of the protocol.
pub(crate) fn message(error: &rmcp::ErrorData, redaction: &Redaction) -> String {
    let text = match &error.data {
        Some(Value::String(data)) if !error.message.contains(data) => {
            format!("{}: {data}", error.message)
        }
        _ => error.message.to_string(),
    };
    redaction.text(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(result: Value, is_structured: bool) -> Answered {
        let result = serde_json::from_value(result).unwrap();
        answered(result, is_structured, &Redaction::default())
    }

    #[test]
    fn text_blocks_are_joined() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let read = read(json!({ "content": [text("a"), text("b")], "isError": true }), false);
        assert_eq!((read.text.as_str(), read.is_error), ("a\nb", true));
    }

    #[test]
    fn structured_content_replaces_text_if_promised() {
        let result = || {
            json!({
                "content": [{ "type": "text", "text": "a = 1" }],
                "structuredContent": { "a": 1 },
            })
        };
        assert_eq!(read(result(), true).text, r#"{"a":1}"#);
        assert_eq!(read(result(), false).text, "a = 1");
        let without_text = json!({ "content": [], "structuredContent": [1] });
        assert_eq!(read(without_text, false).text, "[1]");
    }

    #[test]
    fn invalid_content_is_omitted() {
        let image = |data: &str, mime_type: &str| json!({ "type": "image", "data": data, "mimeType": mime_type });
        let content =
            [image("aGk=", "image/png"), image("?", "image/png"), image("aGk=", "\u{1b}[2J")];
        let read = read(json!({ "content": content }), false);
        let media = Media { data: b"hi".to_vec(), mime_type: "image/png".into() };
        assert_eq!(read.content, [Content::Image(media)]);
        assert_eq!(read.omitted[0], "content that is not base64");
        assert_eq!(read.omitted.len(), 2);
    }
}
