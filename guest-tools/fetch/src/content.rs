//! A response in the form for a model: Markdown, text or an image, with notes.

use std::io::Cursor;

use imagesize::blob_size;
use infer::MatcherType;
use kitbag_page::{Markdown, Page, View, with_notes};
use kitbag_sdk::ErrorInfo;
use kitbag_sdk::host::{Content, Media, emit};
use kitbag_workspace::{Encoding, cut, decode, looks_binary, quoted};

use crate::arguments::{Arguments, Format, Method};
use crate::redirect::Exchange;
use crate::request::Request;
use crate::response::{Body, Response};

/// Maximum number of elements and text nodes that are parsed from a page: a call has 64 MiB of
/// memory.
const MOST_NODES: usize = 200_000;

/// Maximum size of a displayed error page in bytes.
const ERROR_BYTES: usize = 2_000;

/// Answers with a response.
pub(crate) fn show(exchange: Exchange, arguments: &Arguments) -> Result<String, ErrorInfo> {
    if let Some(redirect) = exchange.redirect() {
        return Ok(with_notes(redirect, &Vec::from_iter(exchange.note())));
    }
    let mut notes = Vec::from_iter(exchange.note());
    let Exchange { request, response, .. } = exchange;
    let status = response.status;
    match status {
        _ if request.method == Method::Head => return Ok(with_notes(head(&response), &notes)),
        204 | 205 => {
            let text = format!("status {status}: `{}` has no content", request.url);
            return Ok(with_notes(text, &notes));
        }
        200..=299 => {}
        _ => {
            let error = failed(&request, response);
            return Err(ErrorInfo { message: with_notes(error.message, &notes), ..error });
        }
    }
    let kind = Kind { media_type: response.media_type(), charset: response.charset() };
    let body = response.read()?;
    if body.bytes.is_empty() && body.truncated.is_none() {
        let text = format!("status {status}: `{}` has an empty body", request.url);
        return Ok(with_notes(text, &notes));
    }
    match kind.read(&request, body, arguments.format)? {
        Shown::Text(markdown) => {
            notes.extend(markdown.notes);
            let markdown = Markdown { text: markdown.text, notes };
            markdown.piece(arguments.offset, arguments.max_bytes)
        }
        Shown::Image(media) => Ok(with_notes(image(&request, media)?, &notes)),
    }
}

/// The type of a body as its header fields declare it.
struct Kind {
    media_type: Option<String>,
    charset: Option<&'static encoding_rs::Encoding>,
}

/// A body in displayed form.
enum Shown {
    Text(Markdown),
    Image(Media),
}

impl Kind {
    fn read(&self, request: &Request, body: Body, format: Format) -> Result<Shown, ErrorInfo> {
        let Body { bytes, truncated } = body;
        let found = infer::get(&bytes);
        if let Some(found) = found
            && found.matcher_type() == MatcherType::Image
        {
            return match truncated {
                Some(why) => Err(ErrorInfo::new(format!(
                    "the image at `{}` is incomplete: {why}",
                    request.url
                ))),
                None => {
                    Ok(Shown::Image(Media { data: bytes, mime_type: found.mime_type().to_owned() }))
                }
            };
        }
        if self.is_page(&bytes) && format != Format::Raw {
            let failed = |error| ErrorInfo::new(format!("the page cannot be read: {error}"));
            let file = Cursor::new(bytes);
            let url = Some(&request.url);
            let (page, is_whole) =
                Page::read_beginning(file, self.charset, url, MOST_NODES, failed)?;
            let main = format == Format::Markdown;
            let view = View { base: url, main, all: "`format=\"full\"`" };
            let mut markdown = page.markdown(&view);
            let truncated = match is_whole {
                true => truncated,
                false => Some(format!(
                    "only the first {MOST_NODES} elements and text nodes are \
                                       read"
                )),
            };
            markdown.notes.extend(truncated.map(|why| format!("truncated: {why}")));
            return Ok(Shown::Text(markdown));
        }
        let size = bytes.len();
        match self.text(request, bytes, truncated.is_some()) {
            Some(mut text) => {
                text.notes.extend(truncated.map(|why| format!("truncated: {why}")));
                Ok(Shown::Text(text))
            }
            None => {
                // The actual content decides, even if the server declares `text/plain`.
                let found = found.map(|found| found.mime_type().to_owned());
                let media_type = found.or_else(|| self.media_type.clone());
                let media_type = media_type.as_deref().unwrap_or("of an unknown type");
                Err(ErrorInfo::new(format!(
                    "`{}` is {} ({size} bytes), neither text nor an image",
                    request.url,
                    quoted(media_type)
                )))
            }
        }
    }

    /// Returns whether the body is an HTML page, by its type, or by its first bytes if it has no
    /// type.
    fn is_page(&self, bytes: &[u8]) -> bool {
        match self.media_type.as_deref() {
            Some("text/html" | "application/xhtml+xml") => true,
            None | Some("application/octet-stream") => {
                let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
                let begin = begin.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
                begin.starts_with("<!doctype html") || begin.starts_with("<html")
            }
            Some(_) => false,
        }
    }

    /// Decodes the body if it is text.
    fn text(&self, request: &Request, mut bytes: Vec<u8>, is_truncated: bool) -> Option<Markdown> {
        if let Some(charset) = self.charset {
            if charset == encoding_rs::UTF_8 && looks_binary(&bytes) {
                return None;
            }
            let text = charset.decode(&bytes).0.into_owned();
            return Some(Markdown { text, notes: Vec::new() });
        }
        if is_truncated
            && let Err(error) = str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            // The last character is incomplete.
            let whole = error.valid_up_to();
            bytes.truncate(whole);
        }
        let decoded = decode(bytes).ok()?;
        if decoded.encoding != Encoding::Latin1 {
            return Some(Markdown { text: decoded.text, notes: Vec::new() });
        }
        // Bytes in an undeclared encoding.
        let bytes = decoded.encoding.encode(&decoded.text).ok()?;
        let (text, note) = kitbag_page::guess(&bytes, Some(&request.url));
        Some(Markdown { text: text.into_owned(), notes: vec![note] })
    }
}

fn image(request: &Request, media: Media) -> Result<String, ErrorInfo> {
    let pixels = match blob_size(&media.data) {
        Ok(found) => format!(", {} x {}", found.width, found.height),
        Err(_) => String::new(),
    };
    let shown = format!("{}{pixels}, {} bytes", media.mime_type, media.data.len());
    emit(&Content::Image(media)).map_err(|why| {
        ErrorInfo::new(format!("`{}` ({shown}) cannot be shown: {why}", request.url))
    })?;
    Ok(shown)
}

/// Formats the status and header fields.
fn head(response: &Response) -> String {
    let lines = response.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value);
        // One line per field, regardless of its value.
        let value: String = value.chars().filter(|char| !char.is_control()).collect();
        format!("\n{name}: {value}")
    });
    format!("status {}{}", response.status, lines.collect::<String>())
}

/// Returns the error for an error status, with the start of the page.
fn failed(request: &Request, response: Response) -> ErrorInfo {
    let status = response.status;
    let retry = response.header("retry-after");
    let kind = Kind { media_type: response.media_type(), charset: response.charset() };
    let said = response.read().and_then(|body| kind.read(request, body, Format::Markdown));
    let mut message = format!("`{}` was answered with status {status}", request.shown());
    if let Some(retry) = retry {
        message += &format!("; retry after {}", quoted(&retry));
    }
    if let Ok(Shown::Text(Markdown { text, .. })) = said
        && !text.trim().is_empty()
    {
        message += &format!("\n{}", cut(text.trim(), ERROR_BYTES));
    }
    let error = ErrorInfo::new(message);
    match status {
        408 | 425 | 429 | 500 | 502..=504 => error.transient(),
        _ => error,
    }
}
