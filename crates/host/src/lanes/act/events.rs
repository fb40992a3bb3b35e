//! The events of a result: content, and at most one error at the end.

use kitbag_contract::bindings::host::{Content, Host as _, Media, Resource, ResourceBody};
use kitbag_contract::{ErrorInfo, Outcome};
use wasmtime::component::{ComponentType, Lift};

use super::cbor;
use crate::call::guest_exit::with_last_output;
use crate::call::report::Reports;

/// Keys and their CBOR.
pub(super) type Metadata = Vec<(String, Vec<u8>)>;

#[derive(Clone, Debug, ComponentType, Lift)]
#[component(variant)]
pub(super) enum LocalizedString {
    #[component(name = "plain")]
    Plain(String),
    #[component(name = "localized")]
    Localized(Vec<(String, String)>),
}

/// Why a function of the component failed.
#[derive(Clone, Debug, ComponentType, Lift)]
#[component(record)]
pub(super) struct ActError {
    pub(super) kind: String,
    pub(super) message: LocalizedString,
    #[expect(dead_code, reason = "part of the interface")]
    pub(super) metadata: Metadata,
}

#[derive(Clone, Debug, ComponentType, Lift)]
#[component(record)]
pub(super) struct ContentPart {
    data: Vec<u8>,
    #[component(name = "mime-type")]
    mime_type: Option<String>,
    metadata: Metadata,
}

#[derive(Clone, Debug, ComponentType, Lift)]
#[component(variant)]
pub(super) enum ToolEvent {
    #[component(name = "content")]
    Content(ContentPart),
    #[component(name = "error")]
    Error(ActError),
}

impl LocalizedString {
    /// Returns the English text, or else the first one.
    pub(super) fn into_text(self) -> String {
        let texts = match self {
            Self::Plain(text) => return text,
            Self::Localized(texts) => texts,
        };
        let is_english = |language: &str| language == "en" || language.starts_with("en-");
        let english = texts.iter().position(|(language, _)| is_english(language));
        let chosen = texts.into_iter().nth(english.unwrap_or(0));
        chosen.map(|(_, text)| text).unwrap_or_default()
    }
}

/// The events received until now.
pub(super) struct Events {
    /// The text of the parts, each on lines of its own.
    text: String,
    /// Maximum length of the text.
    limit: usize,
    error: Option<ErrorInfo>,
    /// Number of parts.
    parts: usize,
}

impl Events {
    pub(super) fn new(limit: usize) -> Self {
        Self { text: String::new(), limit, error: None, parts: 0 }
    }

    /// Adds an event. Returns false if the events after it do not matter.
    pub(super) fn add(&mut self, event: ToolEvent, reports: &mut Reports) -> bool {
        if self.is_complete() {
            return false;
        }
        match event {
            ToolEvent::Content(part) => self.add_part(part, reports),
            ToolEvent::Error(error) => self.error = Some(error_info(error)),
        }
        !self.is_complete()
    }

    /// Returns true if further events do not matter.
    pub(super) fn is_complete(&self) -> bool {
        self.error.is_some() || self.text.len() >= self.limit
    }

    fn add_part(&mut self, part: ContentPart, reports: &mut Reports) {
        self.parts += 1;
        let ContentPart { data, mime_type, metadata } = part;
        let number = |key: &str| {
            let entry = metadata.iter().find(|(name, _)| name == key);
            entry.and_then(|(_, value)| cbor::number(value))
        };
        if let Some(done) = number("std:progress") {
            reports.progress(done, number("std:progress-total"), None);
        }
        let kind = mime_type.as_deref().unwrap_or_default();
        // Without parameters such as the character set.
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let media = |data| Media { data, mime_type: kind.clone() };
        let content = match &*kind {
            "application/cbor" => match cbor::to_json(&data, self.limit) {
                Ok(text) => return self.add_text(&text),
                Err(error) => {
                    let message = format!("the tool returned CBOR that cannot be used: {error}");
                    self.error = Some(ErrorInfo::new(message));
                    return;
                }
            },
            kind if kind.starts_with("text/") || is_json(kind) => {
                return self.add_text(&String::from_utf8_lossy(&data));
            }
            kind if kind.starts_with("image/") => Content::Image(media(data)),
            kind if kind.starts_with("audio/") => Content::Audio(media(data)),
            _ => match String::from_utf8(data) {
                Ok(text) if !text.contains('\0') => return self.add_text(&text),
                text => {
                    let data = text.map_or_else(|error| error.into_bytes(), String::into_bytes);
                    let uri = format!("act:part/{}", self.parts);
                    let (mime_type, body) = (mime_type, ResourceBody::Blob(data));
                    Content::Resource(Resource { uri, mime_type, body })
                }
            },
        };
        if let Err(error) = reports.emit(content) {
            self.add_text(&format!("[a part of the result was omitted: {error}]"));
        }
    }

    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let room = self.limit.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
        if room < text.len() {
            // Complete, although a character may not have fitted.
            self.limit = self.text.len();
        }
    }

    pub(super) fn into_outcome(self) -> Outcome {
        match self.error {
            None => Outcome::Success(self.text),
            Some(error) => {
                let message = with_last_output(error.message.clone(), &self.text);
                Outcome::Error(ErrorInfo { message, ..error })
            }
        }
    }
}

pub(super) fn error_info(error: ActError) -> ErrorInfo {
    let ActError { kind, message, .. } = error;
    let message = match message.into_text() {
        message if message.trim().is_empty() => format!("the tool failed: {kind}"),
        message => message,
    };
    ErrorInfo { message, transient: kind == "std:timeout", trace: vec![kind] }
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(mime_type: Option<&str>, data: &[u8]) -> ToolEvent {
        let mime_type = mime_type.map(str::to_owned);
        ToolEvent::Content(ContentPart { data: data.to_vec(), mime_type, metadata: Vec::new() })
    }

    fn error(kind: &str, message: LocalizedString) -> ToolEvent {
        ToolEvent::Error(ActError { kind: kind.into(), message, metadata: Vec::new() })
    }

    fn outcome(limit: usize, events: Vec<ToolEvent>) -> Outcome {
        let (mut all, mut reports) = (Events::new(limit), Reports::default());
        for event in events {
            all.add(event, &mut reports);
        }
        all.into_outcome()
    }

    #[test]
    fn parts_are_joined_by_their_types() {
        let parts = vec![
            part(Some("text/plain; charset=utf-8"), b"one"),
            part(Some("application/cbor"), &[0x82, 1, 2]),
            part(Some("application/JSON"), b"{}"),
            part(None, b"two\n"),
            part(Some("text/html"), b"\xff"),
        ];
        let text = "one\n[1,2]\n{}\ntwo\n\u{fffd}".to_owned();
        assert_eq!(outcome(100, parts), Outcome::Success(text));
        assert_eq!(outcome(100, Vec::new()), Outcome::Success(String::new()));
    }

    #[test]
    fn media_outside_of_a_call_is_omitted() {
        let Outcome::Success(text) = outcome(200, vec![part(Some("image/png"), b"x")]) else {
            panic!("it is a success")
        };
        assert!(text.starts_with("[a part of the result was omitted: "), "{text}");
    }

    #[test]
    fn errors_are_terminal_and_keep_earlier_parts() {
        let languages = vec![("de".into(), "nein".into()), ("en-GB".into(), "no".into())];
        let events = vec![
            part(Some("text/plain"), b"begun"),
            error("std:timeout", LocalizedString::Localized(languages)),
            part(Some("text/plain"), b"ignored"),
        ];
        let message = "no\nits last output:\n  begun".to_owned();
        let trace = vec!["std:timeout".to_owned()];
        let expected = Outcome::Error(ErrorInfo { message, trace, transient: true });
        assert_eq!(outcome(100, events), expected);
        let Outcome::Error(unnamed) =
            outcome(100, vec![error("a:b", LocalizedString::Localized(Vec::new()))])
        else {
            panic!("it is an error")
        };
        assert_eq!(unnamed.message, "the tool failed: a:b");
    }

    #[test]
    fn unusable_cbor_is_an_error() {
        let deep = part(Some("application/cbor"), &[0x81].repeat(1000));
        let Outcome::Error(error) = outcome(100, vec![deep]) else { panic!("it is an error") };
        assert_eq!(
            error.message,
            "the tool returned CBOR that cannot be used: its values are nested more than 64 deep"
        );
    }

    #[test]
    fn text_is_kept_up_to_its_limit() {
        let parts = vec![part(Some("text/plain"), "äää".as_bytes()), part(None, b"more")];
        assert_eq!(outcome(5, parts), Outcome::Success("ää".into()));
        let (mut events, mut reports) = (Events::new(5), Reports::default());
        assert!(events.add(part(None, b"1234"), &mut reports));
        assert!(!events.add(part(None, b"5"), &mut reports));
    }
}
