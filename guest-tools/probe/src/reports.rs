//! Reports during a call, and content in addition to the text.

use kitbag_sdk::host::{self, Content, Level, Link, Media, Resource, ResourceBody};
use kitbag_sdk::{Call, ErrorInfo, Stop};

use crate::arguments::Arguments;
use crate::sentence::count;
use crate::{dialogue, resources};

const LEVELS: [(&str, Level); 8] = [
    ("debug", Level::Debug),
    ("info", Level::Info),
    ("notice", Level::Notice),
    ("warning", Level::Warning),
    ("error", Level::Error),
    ("critical", Level::Critical),
    ("alert", Level::Alert),
    ("emergency", Level::Emergency),
];

pub(crate) fn log(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let wanted = arguments.text_or("level", "info");
    let text = match arguments.number_or("bytes", 0) {
        0 => arguments.text_or("text", "hello").to_owned(),
        bytes => filler(bytes)?,
    };
    let mut logged = 0;
    for _ in 0..arguments.number_or("repeat", 1) {
        for (_, level) in LEVELS.iter().filter(|(name, _)| *name == wanted || wanted == "all") {
            host::log(*level, &text);
            logged += 1;
        }
    }
    end(call, arguments, format!("log: {logged} {wanted}"))
}

pub(crate) fn progress(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let number = |text: &str| {
        let invalid = || ErrorInfo::new(format!("invalid arguments: `{text}` is not a number"));
        text.parse::<f64>().map_err(|_| invalid())
    };
    let steps = arguments.texts("steps").into_iter().map(number).collect::<Result<Vec<_>, _>>()?;
    let total = arguments.optional_text("total").map(number).transpose()?;
    let text = match arguments.number_or("bytes", 0) {
        0 => arguments.optional_text("text").map(ToOwned::to_owned),
        bytes => Some(filler(bytes)?),
    };
    for step in &steps {
        host::progress(*step, total, text.as_deref());
    }
    let last = steps.last().copied().unwrap_or_default();
    let more = arguments.number_or("more", 0);
    for number in 1..=more {
        host::progress(last + number as f64, total, text.as_deref());
    }
    end(call, arguments, format!("progress: {} steps", steps.len() as u64 + more))
}

pub(crate) fn emit(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let kind = arguments.text_or("kind", "image");
    let data = match arguments.optional_text("data") {
        Some(text) => text.to_owned(),
        None => filler(arguments.number_or("bytes", 4))?,
    };
    let mime_type = arguments.text_or("mime", "image/png").to_owned();
    let uri = arguments.text_or("uri", "file:///a").to_owned();
    let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let media = || Media { data: data.clone().into_bytes(), mime_type: mime_type.clone() };
    let resource = |body| Resource { uri: uri.clone(), mime_type: optional(&mime_type), body };
    let link = || Link {
        uri: uri.clone(),
        name: arguments.text_or("name", "a").to_owned(),
        title: arguments.optional_text("title").map(ToOwned::to_owned),
        description: arguments.optional_text("description").map(ToOwned::to_owned),
        mime_type: optional(&mime_type),
        size: Some(data.len() as u64),
    };
    let make = |kind: &str| match kind {
        "image" => Ok(Content::Image(media())),
        "audio" => Ok(Content::Audio(media())),
        "text" => Ok(Content::Resource(resource(ResourceBody::Text(data.clone())))),
        "blob" => Ok(Content::Resource(resource(ResourceBody::Blob(data.clone().into_bytes())))),
        "link" => Ok(Content::Link(link())),
        _ => Err(ErrorInfo::new(format!("invalid arguments: there is no kind `{kind}`"))),
    };
    let kinds = match kind {
        "all" => ["image", "audio", "text", "blob", "link"].as_slice(),
        kind => &[kind],
    };
    let repeat = usize::try_from(arguments.number_or("repeat", 1)).unwrap_or(usize::MAX);
    let mut taken = 0;
    for kind in std::iter::repeat_n(kinds, repeat).flatten() {
        if let Err(reason) = host::emit(&make(kind)?) {
            let items = count(taken, "item", "items");
            return end(call, arguments, format!("emit: {items} taken, then refused ({reason})"));
        }
        taken += 1;
    }
    end(call, arguments, format!("emit: {} taken", count(taken, "item", "items")))
}

/// Tries all reports without a listener, and returns the results.
pub(crate) fn unheard() -> String {
    host::log(Level::Emergency, "this must not be logged");
    host::progress(1.0, None, Some("this must not be shown"));
    let image = Media { data: vec![0], mime_type: "image/png".to_owned() };
    match host::emit(&Content::Image(image)) {
        Ok(()) => "emit: taken".to_owned(),
        Err(reason) => format!("emit: refused ({reason})"),
    }
}

/// Performs the final action of a call.
pub(crate) fn end(call: &Call, arguments: &Arguments, sentence: String) -> Result<String, Stop> {
    match arguments.text_or("then", "") {
        "spin" => resources::spin(call, arguments),
        "panic" => dialogue::panic(call, arguments),
        "fail" => dialogue::fail(call, arguments),
        "ask" => dialogue::ask(call, arguments).map(|_| sentence),
        "exit" => dialogue::exit(call, arguments),
        "recurse" => resources::recurse(call, arguments),
        #[cfg(target_arch = "wasm32")]
        "unreachable" => std::arch::wasm32::unreachable(),
        _ => Ok(sentence),
    }
}

fn filler(bytes: u64) -> Result<String, ErrorInfo> {
    let bytes = usize::try_from(bytes)
        .map_err(|_| ErrorInfo::new("invalid arguments: `bytes` is more than there can be"))?;
    Ok("x".repeat(bytes))
}
