//! `read_media`.

use kitbag_sdk::host::{Content, Media, emit};
use kitbag_sdk::{Call, ErrorInfo, Stop};
use kitbag_workspace::{Location, looks_binary};
use serde::Deserialize;

use crate::file::{Opened, is_media};
use crate::numbers::size;

/// The formats that models accept.
const SHOWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Maximum number of pixels per side, and of bytes (5 MB in base64), that model interfaces accept.
///
/// Source: Anthropic, "Vision"; OpenAI and Google accept more.
const MOST_PIXELS: usize = 8_000;
const MOST_BYTES: usize = 3_932_160;

/// The advice for an image that is too large.
const SMALLER: &str = "make a smaller copy, such as 1500 pixels wide";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let mut opened = Opened::open(call, &arguments.path)?;
    let Some(data) = opened.read_whole()? else {
        return Err(opened.too_large("`read_media`").into());
    };
    let mime_type = media_type(&opened.location, &data)?;
    let bytes = size(data.len() as u64);
    let pixels = match mime_type.starts_with("image/") {
        true => {
            let (width, height) = pixels(&data, mime_type).map_err(|why| {
                ErrorInfo::new(format!("`{}` ({mime_type}, {bytes}) {why}", opened.location.given))
            })?;
            format!(", {width} x {height}")
        }
        false => String::new(),
    };
    let told = format!("{mime_type}{pixels}, {bytes}");
    let media = Media { data, mime_type: mime_type.to_owned() };
    let content = match mime_type.starts_with("image/") {
        true => Content::Image(media),
        false => Content::Audio(media),
    };
    emit(&content).map_err(|why| {
        let given = &opened.location.given;
        ErrorInfo::new(format!("`{given}` ({told}) cannot be shown: {why}; {SMALLER}"))
    })?;
    Ok(told)
}

/// Returns the size of an image in pixels.
///
/// # Errors
///
/// The reason why models do not accept it, and a fix.
fn pixels(data: &[u8], mime_type: &str) -> Result<(usize, usize), String> {
    if !SHOWN.contains(&mime_type) {
        return Err("cannot be shown: models accept PNG, JPEG, GIF and WebP; convert a copy".into());
    }
    let damaged = |why: &str| format!("is damaged: {why}");
    let found = imagesize::blob_size(data);
    let found = found.map_err(|_| damaged("its header does not contain its size"))?;
    if !has_end(data, mime_type) {
        return Err(damaged("its end is missing"));
    }
    match (found.width, found.height) {
        (0, _) | (_, 0) => Err(damaged("it has no pixels")),
        (width, height) if width.max(height) > MOST_PIXELS => Err(format!(
            "cannot be shown: it has {width} x {height} pixels, but models accept images of at \
             most {MOST_PIXELS} per side; {SMALLER}"
        )),
        _ if data.len() > MOST_BYTES => {
            Err(format!("cannot be shown: models accept images of at most 3.75 MiB; {SMALLER}"))
        }
        size => Ok(size),
    }
}

/// Returns true if an image is complete. Programs append data to images.
fn has_end(data: &[u8], mime_type: &str) -> bool {
    let has = |data: &[u8], end: &[u8]| data.windows(end.len()).rev().any(|bytes| bytes == end);
    let padding = data.iter().rev().take_while(|byte| **byte == 0).count();
    match mime_type {
        "image/png" => has(data, b"IEND"),
        "image/jpeg" => has(jpeg_scan(data), b"\xff\xd9"),
        "image/gif" => data[..data.len() - padding].ends_with(b";"),
        "image/webp" => {
            let said = data.get(4..8).and_then(|size| size.try_into().ok()).map(u32::from_le_bytes);
            said.is_some_and(|said| said as usize <= data.len().saturating_sub(8))
        }
        _ => true,
    }
}

/// Returns a JPEG from its first scan on: a thumbnail before the scan has its own end marker.
fn jpeg_scan(data: &[u8]) -> &[u8] {
    let mut rest = &data[2.min(data.len())..];
    while let [0xff, marker, high, low, ..] = rest {
        let length = 2 + usize::from(u16::from_be_bytes([*high, *low]));
        if *marker == 0xda {
            return rest;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    rest
}

/// Returns the type of an image or audio file.
fn media_type(location: &Location, data: &[u8]) -> Result<&'static str, ErrorInfo> {
    let given = &location.given;
    let found = infer::get(data).map(|kind| kind.mime_type());
    match found {
        Some(found) if is_media(found) => Ok(found),
        Some(found) => {
            Err(ErrorInfo::new(format!("`{given}` is {found}, neither an image nor audio")))
        }
        None if data.is_empty() => Err(ErrorInfo::new(format!("`{given}` is empty"))),
        None if looks_binary(data) => {
            Err(ErrorInfo::new(format!("`{given}` is neither an image nor audio of a known type")))
        }
        None => Err(ErrorInfo::new(format!("`{given}` is text; `read_file` reads it"))),
    }
}
