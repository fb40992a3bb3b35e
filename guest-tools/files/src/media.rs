//! `read_media`.

use kitbag_sdk::host::{Content, Media, emit};
use kitbag_sdk::{Call, Description, ErrorInfo, Stop, json};
use kitbag_workspace::{Location, looks_binary};
use serde::Deserialize;

use crate::file::{Opened, is_media};
use crate::shown::size;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
}

pub(crate) fn describe(name: &str) -> Description {
    kitbag_workspace::reading(
        name,
        "Show image or sound",
        "Show an image or a sound (PNG, JPEG, GIF, WebP, MP3, WAV, …) as content. Example: \
         {\"path\":\"docs/plot.png\"}",
        json!({ "path": { "type": "string" } }),
        &["path"],
    )
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let mut opened = Opened::open(call, &arguments.path)?;
    let Some(data) = opened.read_whole()? else {
        return Err(opened.too_large("`read_media`").into());
    };
    let mime_type = media_type(&opened.location, &data)?;
    let bytes = size(data.len() as u64);
    let pixels = match imagesize::blob_size(&data) {
        Ok(found) if mime_type.starts_with("image/") => {
            format!(", {} x {}", found.width, found.height)
        }
        _ => String::new(),
    };
    let told = format!("{mime_type}{pixels}, {bytes}");
    let media = Media { data, mime_type: mime_type.to_owned() };
    let content = match mime_type.starts_with("image/") {
        true => Content::Image(media),
        false => Content::Audio(media),
    };
    emit(&content).map_err(|why| {
        ErrorInfo::new(format!("`{}` ({told}) cannot be shown: {why}", opened.location.given))
    })?;
    Ok(told)
}

/// The type of an image or a sound.
fn media_type(location: &Location, data: &[u8]) -> Result<&'static str, ErrorInfo> {
    let given = &location.given;
    let found = infer::get(data).map(|kind| kind.mime_type());
    match found {
        Some(found) if is_media(found) => Ok(found),
        Some(found) => {
            Err(ErrorInfo::new(format!("`{given}` is {found}, neither an image nor a sound")))
        }
        None if data.is_empty() => Err(ErrorInfo::new(format!("`{given}` is empty"))),
        None if looks_binary(data) => {
            Err(ErrorInfo::new(format!("`{given}` is neither an image nor a sound that is known")))
        }
        None => Err(ErrorInfo::new(format!("`{given}` is text; `read_file` reads it"))),
    }
}
