//! What a tool tells while it runs, and gives besides its text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use kitbag_base::text::{is_hidden, shown};

/// How much a message matters, from the least to the most: the levels of syslog
/// (RFC 5424) and of the Model Context Protocol.
///
/// Contract: `wit/tool.wit`, enum `level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For the author of the tool.
    Debug,
    /// What the tool does.
    Info,
    /// Nothing is wrong, but it is worth knowing.
    Notice,
    /// Something that may go wrong.
    Warning,
    /// Something went wrong; the call goes on.
    Error,
    /// A part of the tool's work is impossible.
    Critical,
    /// A person has to act at once.
    Alert,
    /// Nothing works any longer.
    Emergency,
}

/// A text is no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a level; the levels are `debug`, `info`, `notice`, `warning`, `error`, \
     `critical`, `alert` and `emergency`", shown(.0)
)]
pub struct ParseLevelError(pub String);

/// How far a call is, in the tool's own unit. Untrusted.
///
/// Contract: `wit/tool.wit`, function `progress`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// How much is done: finite and not negative.
    pub done: f64,
    /// How much there is in all, where that is known: finite and not negative.
    /// It may be less than what is done.
    pub total: Option<f64>,
    /// What the tool is at. Untrusted text.
    pub message: Option<String>,
}

/// An image or a sound.
///
/// Contract: `wit/tool.wit`, record `media`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// Its bytes.
    pub data: Vec<u8>,
    /// Its form, such as `image/png`.
    pub mime_type: String,
}

/// What is in a resource.
///
/// Contract: `wit/tool.wit`, variant `resource-body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Anything else.
    Blob(Vec<u8>),
}

/// A document that comes with an answer.
///
/// Contract: `wit/tool.wit`, record `resource`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its name, with a scheme. It was not opened.
    pub uri: String,
    /// Its form, such as `text/html`.
    pub mime_type: Option<String>,
    /// What is in it.
    pub body: ResourceBody,
}

/// A document that is elsewhere.
///
/// Contract: `wit/tool.wit`, record `link`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceLink {
    /// Where, with a scheme. It was not opened.
    pub uri: String,
    /// What it is called. Untrusted text.
    pub name: String,
    /// What a person reads instead of the name. Untrusted text.
    pub title: Option<String>,
    /// What is to be found there. Untrusted text.
    pub description: Option<String>,
    /// Its form, such as `text/html`.
    pub mime_type: Option<String>,
    /// Its size in bytes, as the tool says.
    pub size: Option<u64>,
}

/// What an answer holds besides its text. Untrusted.
///
/// Contract: `wit/tool.wit`, variant `content`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An image.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A document.
    Resource(Resource),
    /// A document that is elsewhere.
    Link(ResourceLink),
}

/// Content does not have the form that it should have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// A text is no MIME type.
    #[error("`{}` is not a MIME type; write it as `type/subtype`, such as `image/png`", shown(.0))]
    MimeType(String),
    /// A text is no URI.
    #[error(
        "`{}` is not a URI; it starts with a scheme, such as `https:`, and holds no space and no \
         control character", shown(.0)
    )]
    Uri(String),
}

impl Content {
    /// How many bytes it has: its data and every text.
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

    /// Checks the form of its MIME type and its URI.
    ///
    /// # Errors
    ///
    /// [`ContentError`] names the text that does not have it.
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

/// `type/subtype`, each a restricted name of RFC 6838, and parameters of
/// printable ASCII after a `;`.
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

/// A scheme of RFC 3986 and something after it, without anything that ends a
/// URI or that is invisible.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        && !rest.is_empty()
        && !rest.chars().any(|c| c.is_whitespace() || is_hidden(c))
}

impl LogLevel {
    /// Every level, from the least to the most.
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
    fn a_level_is_read_as_it_is_shown_and_as_it_is_sent() {
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
    fn a_mime_type_is_two_names() {
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
    fn a_uri_has_a_scheme_and_nothing_that_ends_it() {
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
    fn every_byte_of_content_counts() {
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
    fn the_error_names_what_is_wrong() {
        let mime_type = "a\u{1b}b".to_owned();
        let error = Content::Audio(Media { data: Vec::new(), mime_type }).check().unwrap_err();
        assert!(error.to_string().starts_with("`a\\u{1b}b` is not a MIME type"), "{error}");
    }
}
