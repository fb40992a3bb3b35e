//! What a response is for a model: Markdown, text or an image, and what there is to know
//! besides.

use std::io::Cursor;

use imagesize::blob_size;
use infer::MatcherType;
use kitbag_page::{Page, piece};
use kitbag_sdk::ErrorInfo;
use kitbag_sdk::host::{Content, Media, emit};
use kitbag_workspace::{cut, decode, looks_binary, quoted};

use crate::arguments::{Arguments, Format, Method};
use crate::request::Request;
use crate::response::{Body, Response};

/// How many elements and texts of a page are read: a call has 64 MiB of memory.
const MOST_NODES: usize = 200_000;

/// How much of the page of an error is shown.
const ERROR_BYTES: usize = 2_000;

/// Answers with a response.
pub(crate) fn show(
    request: &Request,
    response: Response,
    arguments: &Arguments,
) -> Result<String, ErrorInfo> {
    let status = response.status;
    match status {
        300..=399 if response.header("location").is_some() => return Ok(moved(request, &response)),
        _ if request.method == Method::Head => return Ok(head(&response)),
        200..=299 => {}
        _ => return Err(failed(request, response)),
    }
    let kind = Kind { media_type: response.media_type(), charset: response.charset() };
    let body = response.read()?;
    let shown = match kind.read(request, body, arguments.format)? {
        Shown::Text { text, truncated } => {
            let piece = piece(&text, arguments.offset, arguments.max_bytes)?;
            match truncated {
                Some(why) => format!("{piece}\n[truncated: {why}]"),
                None => piece,
            }
        }
        Shown::Image(media) => image(request, media)?,
    };
    Ok(shown)
}

/// What is known of a body before it is read.
struct Kind {
    media_type: Option<String>,
    charset: Option<&'static encoding_rs::Encoding>,
}

/// What a body turned out to be.
enum Shown {
    Text { text: String, truncated: Option<String> },
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
                    "the image at `{}` is not whole: {why}",
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
            let (page, is_whole) = Page::read_beginning(file, self.charset, MOST_NODES, failed)?;
            let text = page.markdown(Some(&request.url), format == Format::Markdown);
            let truncated = match is_whole {
                true => truncated,
                false => Some(format!("only the first {MOST_NODES} elements and texts are read")),
            };
            return Ok(Shown::Text { text, truncated });
        }
        let size = bytes.len();
        match self.text(bytes, truncated.is_some()) {
            Some(text) => Ok(Shown::Text { text, truncated }),
            None => {
                let found = found.map(|found| found.mime_type().to_owned());
                let media_type = self.media_type.clone().or(found);
                let media_type = media_type.as_deref().unwrap_or("of no known type");
                Err(ErrorInfo::new(format!(
                    "`{}` is {} ({size} bytes), neither text nor an image",
                    request.url,
                    quoted(media_type)
                )))
            }
        }
    }

    /// Whether it is an HTML page, as it says, or as it begins where it says nothing.
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

    /// The body as text, where it is that.
    fn text(&self, mut bytes: Vec<u8>, is_truncated: bool) -> Option<String> {
        if let Some(charset) = self.charset {
            if charset == encoding_rs::UTF_8 && looks_binary(&bytes) {
                return None;
            }
            return Some(charset.decode(&bytes).0.into_owned());
        }
        if is_truncated
            && let Err(error) = str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            // The last character is not whole.
            let whole = error.valid_up_to();
            bytes.truncate(whole);
        }
        decode(bytes).ok().map(|decoded| decoded.text)
    }
}

fn image(request: &Request, media: Media) -> Result<String, ErrorInfo> {
    let pixels = match blob_size(&media.data) {
        Ok(found) => format!(", {} x {}", found.width, found.height),
        Err(_) => String::new(),
    };
    let told = format!("{}{pixels}, {} bytes", media.mime_type, media.data.len());
    emit(&Content::Image(media)).map_err(|why| {
        ErrorInfo::new(format!("`{}` ({told}) cannot be shown: {why}", request.url))
    })?;
    Ok(told)
}

/// A redirect that was not followed.
fn moved(request: &Request, response: &Response) -> String {
    let location = response.header("location").unwrap_or_default();
    // A target is relative to what was asked for.
    let target = request.url.join(&location).map_or(location, String::from);
    format!(
        "status {}: `{}` is redirected to {}\n[not followed; fetch that URL to read it]",
        response.status,
        request.url,
        quoted(&target)
    )
}

/// Status and header fields.
fn head(response: &Response) -> String {
    let lines = response.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value);
        // One line each, whatever is in it.
        let value: String = value.chars().filter(|char| !char.is_control()).collect();
        format!("\n{name}: {value}")
    });
    format!("status {}{}", response.status, lines.collect::<String>())
}

/// An error of the server, with the beginning of what it says.
fn failed(request: &Request, response: Response) -> ErrorInfo {
    let status = response.status;
    let retry = response.header("retry-after");
    let kind = Kind { media_type: response.media_type(), charset: response.charset() };
    let said = response.read().and_then(|body| kind.read(request, body, Format::Markdown));
    let mut message = format!("`{}` was answered with status {status}", request.shown());
    if let Some(retry) = retry {
        message += &format!("; retry after {}", quoted(&retry));
    }
    if let Ok(Shown::Text { text, .. }) = said
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
