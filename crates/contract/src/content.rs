//! Log messages, progress and content that a tool emits during a call.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use kitbag_base::text::{is_hidden, shown};

/// The severity of a message, from lowest to highest: the levels of syslog (RFC 5424) and of the
/// Model Context Protocol.
///
/// Contract: `wit/tool.wit`, enum `level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for the author of the tool.
    Debug,
    /// The tool's current work.
    Info,
    /// A normal but noteworthy event.
    Notice,
    /// A possible problem.
    Warning,
    /// A failure that does not end the call.
    Error,
    /// A part of the tool's work has become impossible.
    Critical,
    /// A person must act immediately.
    Alert,
    /// The tool is unusable.
    Emergency,
}

/// The error for a string that is not a level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a level; the levels are `debug`, `info`, `notice`, `warning`, `error`, \
     `critical`, `alert` and `emergency`", shown(.0)
)]
pub struct ParseLevelError(pub String);

/// The progress of a call, in the tool's own unit. Untrusted.
///
/// Contract: `wit/tool.wit`, function `progress`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// The finished amount: finite and not negative.
    pub done: f64,
    /// The total amount, if known: finite and not negative. It may be less than `done`.
    pub total: Option<f64>,
    /// The current step. Untrusted text.
    pub message: Option<String>,
}

/// An image or audio clip.
///
/// Contract: `wit/tool.wit`, record `media`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The content.
    pub data: Vec<u8>,
    /// The MIME type, such as `image/png`.
    pub mime_type: String,
}

/// The content of a resource.
///
/// Contract: `wit/tool.wit`, variant `resource-body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Binary data.
    Blob(Vec<u8>),
}

/// A document that is embedded in an answer.
///
/// Contract: `wit/tool.wit`, record `resource`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The URI of the document. kitbag does not open it.
    pub uri: String,
    /// The MIME type, such as `text/html`.
    pub mime_type: Option<String>,
    /// The content.
    pub body: ResourceBody,
}

/// A link to a document.
///
/// Contract: `wit/tool.wit`, record `link`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceLink {
    /// The URI of the document. kitbag does not open it.
    pub uri: String,
    /// The name of the document. Untrusted text.
    pub name: String,
    /// The display name. Untrusted text.
    pub title: Option<String>,
    /// The content of the document. Untrusted text.
    pub description: Option<String>,
    /// The MIME type, such as `text/html`.
    pub mime_type: Option<String>,
    /// The size in bytes that the tool declares.
    pub size: Option<u64>,
}

/// Content of an answer besides its text. Untrusted.
///
/// Contract: `wit/tool.wit`, variant `content`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An image.
    Image(Media),
    /// An audio clip.
    Audio(Media),
    /// An embedded document.
    Resource(Resource),
    /// A link to a document.
    Link(ResourceLink),
}

/// The error for content that is not well-formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// The string is not a MIME type.
    #[error("`{}` is not a MIME type; write it as `type/subtype`, such as `image/png`", shown(.0))]
    MimeType(String),
    /// The string is not a URI.
    #[error(
        "`{}` is not a URI; it starts with a scheme, such as `https:`, and holds no space and no \
         control character", shown(.0)
    )]
    Uri(String),
}

impl Content {
    /// Returns the size in bytes of the data and all strings.
    pub fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Image(media) | Self::Audio(media) => media.data.len() + media.mime_type.len(),
            Self::Resource(Resource { uri, mime_type, body }) => {
                let body = match body {
                    ResourceBody::Text(text) => text.len(),
                    ResourceBody::Blob(data) => data.len(),
                };
                uri.len() + length(mime_type) + body
            }
            Self::Link(ResourceLink { uri, name, title, description, mime_type, size: _ }) => {
                let optional = [title, description, mime_type].map(length);
                uri.len() + name.len() + optional.iter().sum::<usize>()
            }
        }
    }

    /// Checks the MIME type and the URI.
    ///
    /// # Errors
    ///
    /// [`ContentError`] names the invalid string.
    pub fn check(&self) -> Result<(), ContentError> {
        let (uri, mime_type) = match self {
            Self::Image(media) | Self::Audio(media) => (None, Some(&media.mime_type)),
            Self::Resource(resource) => (Some(&resource.uri), resource.mime_type.as_ref()),
            Self::Link(link) => (Some(&link.uri), link.mime_type.as_ref()),
        };
        if let Some(mime_type) = mime_type
            && !is_mime_type(mime_type)
        {
            return Err(ContentError::MimeType(mime_type.clone()));
        }
        match uri {
            Some(uri) if !is_uri(uri) => Err(ContentError::Uri(uri.clone())),
            _ => Ok(()),
        }
    }
}

/// Returns true for `type/subtype` of restricted names (RFC 6838), with optional parameters of
/// printable ASCII after `;`.
fn is_mime_type(text: &str) -> bool {
    const LONGEST_NAME: usize = 127;
    const LONGEST: usize = 1024;
    let is_name = |name: &str| {
        let rest = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.len() <= LONGEST_NAME
            && name.bytes().all(rest)
    };
    let (names, parameters) = text.split_once(';').unwrap_or((text, ""));
    text.len() <= LONGEST
        && names.split_once('/').is_some_and(|(ty, subtype)| is_name(ty) && is_name(subtype))
        && parameters.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
}

/// Returns true for a scheme (RFC 3986) that is followed by characters that are visible and do not
/// end a URI.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        && !rest.is_empty()
        && !rest.chars().any(|c| c.is_whitespace() || is_hidden(c))
}

impl LogLevel {
    /// All levels, from lowest to highest.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];
}

impl FromStr for LogLevel {
    type Err = ParseLevelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut levels = Self::ALL.into_iter();
        levels
            .find(|level| level.to_string() == text)
            .ok_or_else(|| ParseLevelError(text.to_owned()))
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_parsed_back() {
        for level in LogLevel::ALL {
            let text = level.to_string();
            assert_eq!(text.parse(), Ok(level));
            assert_eq!(serde_json::to_value(level).unwrap(), text);
            assert_eq!(serde_json::from_value::<LogLevel>(text.into()).unwrap(), level);
        }
        assert!(LogLevel::ALL.is_sorted());
        for text in ["", "Info", "warn", "fatal"] {
            assert_eq!(text.parse::<LogLevel>(), Err(ParseLevelError(text.into())));
        }
    }

    #[test]
    fn mime_types_have_two_names() {
        let check = |text: &str, expected: bool| assert_eq!(is_mime_type(text), expected, "{text}");
        check("image/png", true);
        check("image/svg+xml", true);
        check("application/vnd.api+json", true);
        check("text/html;profile=mcp-app", true);
        check("text/plain; charset=utf-8", true);
        check("", false);
        check("png", false);
        check("image/", false);
        check("/png", false);
        check("image/png/more", false);
        check("image /png", false);
        check("image/png\n", false);
        check("text/plain;\u{1b}[2J", false);
        check("text/plain;\u{202e}", false);
        check("-a/b", false);
        check("imäge/png", false);
        check(&format!("a/{}", "b".repeat(128)), false);
        check(&format!("a/b;{}", "c".repeat(1024)), false);
    }

    #[test]
    fn uris_have_a_scheme_and_no_delimiters() {
        let check = |text: &str, expected: bool| assert_eq!(is_uri(text), expected, "{text}");
        check("https://example.com/a?b#c", true);
        check("file:///workspace/a.txt", true);
        check("urn:isbn:0", true);
        check("x-own+1.2:ä", true);
        check("", false);
        check("a.txt", false);
        check("/workspace/a.txt", false);
        check("https:", false);
        check(":a", false);
        check("1a:b", false);
        check("a b:c", false);
        check("https://a b", false);
        check("https://a\nb", false);
        check("https://a\u{1b}[2J", false);
        check("https://a\u{202e}b", false);
    }

    #[test]
    fn content_size_includes_every_string() {
        let text = |text: &str| Some(text.to_owned());
        let check = |content: Content, expected: usize| assert_eq!(content.size(), expected);
        check(Content::Image(Media { data: vec![0; 10], mime_type: "a/b".into() }), 13);
        let body = ResourceBody::Text("four".into());
        check(Content::Resource(Resource { uri: "a:b".into(), mime_type: text("a/b"), body }), 10);
        let link = ResourceLink {
            uri: "a:b".into(),
            name: "n".into(),
            title: text("ti"),
            description: text("des"),
            mime_type: text("a/b"),
            size: Some(1 << 40),
        };
        check(Content::Link(link), 12);
    }

    #[test]
    fn content_errors_name_the_string() {
        let mime_type = "a\u{1b}b".to_owned();
        let error = Content::Audio(Media { data: Vec::new(), mime_type }).check().unwrap_err();
        assert!(error.to_string().starts_with("`a\\u{1b}b` is not a MIME type"), "{error}");
    }
}
