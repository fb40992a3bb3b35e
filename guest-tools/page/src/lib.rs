//! HTML pages as Markdown: `parse` builds a bounded tree of the page in the encoding that `charset`
//! finds, `content` selects the main content, and the crate `htmd` writes it as Markdown, with our
//! own `table`, `code`, `link` and `image`.
//!
//! A page is untrusted: it is any response of a web server. Input for which these crates take
//! quadratic time is never passed to them.

#![forbid(unsafe_code)]

mod article;
mod attributes;
mod charset;
mod code;
mod content;
mod dom;
mod image;
mod link;
mod parse;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod visibility;
mod word;

use std::io::{self, Read, Seek};

pub use encoding_rs::Encoding;
use htmd::element_handler::{HandlerResult, Handlers};
use htmd::options::{BulletListMarker, HrStyle, Options};
use htmd::{Element, HtmlToMarkdown};
use kitbag_sdk::ErrorInfo;
use url::Url;

pub use crate::charset::guess;

/// The default length of an answer in bytes.
pub const MAX_BYTES: usize = 40_000;

/// A page with less text, in characters, may need its scripts to show more.
const LITTLE: usize = 100;

/// A page, as a tree of elements. It has at most a million elements and text nodes, and at most 128
/// levels.
pub struct Page(parse::Parsed);

/// The part of a page to write, and its options.
pub struct View<'a> {
    /// The URL of the page, which makes links absolute.
    pub base: Option<&'a Url>,
    /// True for only the main content, false for the whole page.
    pub main: bool,
    /// The caller's argument for the whole page, for notes.
    pub all: &'a str,
}

/// A page as Markdown.
pub struct Markdown {
    /// The content.
    pub text: String,
    /// Notes for the reader: the guessed encoding, hidden content, missing text.
    pub notes: Vec<String>,
}

impl Page {
    /// Parses a page from text.
    ///
    /// # Errors
    ///
    /// [`ErrorInfo`] if the page has too many elements.
    pub fn parse(text: String) -> Result<Self, ErrorInfo> {
        parse::text(text).map(Self)
    }

    /// Reads a page twice, first for its encoding: from the byte order mark, otherwise `encoding`
    /// as declared by the sender, otherwise from the page as browsers do, otherwise a guess based
    /// on the bytes and the host of `url`.
    ///
    /// # Errors
    ///
    /// `failed` explains an error of the file. A page may have too many elements.
    pub fn read(
        file: impl Read + Seek,
        encoding: Option<&'static Encoding>,
        url: Option<&Url>,
        failed: impl Fn(io::Error) -> ErrorInfo,
    ) -> Result<Self, ErrorInfo> {
        match parse::read(file, encoding, url, None, failed)? {
            parsed if parsed.is_whole => Ok(Self(parsed)),
            _ => Err(parse::too_many()),
        }
    }

    /// Reads a page like [`read`](Self::read), or the start of a page with more than `most_nodes`
    /// elements and text nodes. Returns whether the page is complete.
    ///
    /// # Errors
    ///
    /// `failed` explains an error of the file.
    pub fn read_beginning(
        file: impl Read + Seek,
        encoding: Option<&'static Encoding>,
        url: Option<&Url>,
        most_nodes: usize,
        failed: impl Fn(io::Error) -> ErrorInfo,
    ) -> Result<(Self, bool), ErrorInfo> {
        let parsed = parse::read(file, encoding, url, Some(most_nodes), failed)?;
        let is_whole = parsed.is_whole;
        Ok((Self(parsed), is_whole))
    }

    /// Writes the page as Markdown.
    pub fn markdown(self, view: &View) -> Markdown {
        let Self(parse::Parsed { tree, guess, room, .. }) = self;
        let content = content::select(&tree, view, room);
        let options = Options {
            bullet_list_marker: BulletListMarker::Dash,
            hr_style: HrStyle::Dashes,
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Options::default()
        };
        let converter = HtmlToMarkdown::builder()
            .options(options)
            .add_handler(vec!["a"], link::link)
            .add_handler(vec!["h1", "h2", "h3", "h4", "h5", "h6"], link::heading)
            .add_handler(vec!["img"], image::image)
            .add_handler(vec!["pre"], code::pre)
            .add_handler(vec!["table"], table::table)
            .add_handler(vec!["sup", "sub"], |handlers: &dyn Handlers, element: Element| {
                // Markdown has no equivalent, and without the tags 10<sup>6</sup> would be 106.
                around(
                    handlers,
                    &element,
                    &format!("<{}>", element.tag),
                    &format!("</{}>", element.tag),
                )
            })
            .add_handler(vec!["del", "s", "strike"], |handlers: &dyn Handlers, element: Element| {
                around(handlers, &element, "~~", "~~")
            })
            .build();
        word::keep_underscores(&content.node);
        let mut text = word::with_underscores(converter.tree_to_markdown(&content.node));
        drop(tree);
        let mut notes = content.notes;
        notes.extend(shortage(&text, content.scripts));
        notes.extend(guess);
        if let Some(title) = content.title.filter(|_| !has_title(&text)) {
            let title = image::escaped(&title, &image::SPECIAL);
            text = format!("# {title}\n\n{text}").trim_end().to_owned();
        }
        Markdown { text, notes }
    }
}

impl Markdown {
    /// Returns a piece of the text from `offset` on, with at most `max_bytes`, followed by the
    /// arguments that continue and the notes.
    ///
    /// # Errors
    ///
    /// [`ErrorInfo`] if `offset` is beyond the text.
    pub fn piece(&self, offset: usize, max_bytes: usize) -> Result<String, ErrorInfo> {
        let piece = piece(&self.text, offset, max_bytes)?;
        Ok(with_notes(piece, &self.notes))
    }
}

/// Appends notes to an answer, each in brackets on a separate line.
pub fn with_notes(text: String, notes: &[String]) -> String {
    let mut answer = text;
    for note in notes {
        if !answer.is_empty() {
            answer.push('\n');
        }
        answer.push_str(&format!("[{note}]"));
    }
    answer
}

/// Returns the note on a page with almost no text.
fn shortage(text: &str, scripts: usize) -> Option<String> {
    let scripts = match scripts {
        0 => String::new(),
        1 => "; its script was not run".to_owned(),
        _ => format!("; its {scripts} scripts were not run"),
    };
    match dom::letters(text) {
        0 => Some(format!("the page has no text{scripts}")),
        1..LITTLE if !scripts.is_empty() => Some(format!("the page has little text{scripts}")),
        _ => None,
    }
}

/// Returns the content of an element between two marks, or an empty string if it is empty.
fn around(
    handlers: &dyn Handlers,
    element: &Element,
    before: &str,
    after: &str,
) -> Option<HandlerResult> {
    let content = handlers.walk_children(element.node).content;
    match content.trim().is_empty() {
        true => Some(content.into()),
        false => Some(format!("{before}{}{after}", content.trim()).into()),
    }
}

/// Returns whether the Markdown starts with a top-level heading.
fn has_title(markdown: &str) -> bool {
    markdown.lines().take(40).any(|line| line.starts_with("# "))
}

/// Returns a piece of a text from `offset` on, with at most `max_bytes`, followed by the arguments
/// that continue.
///
/// # Errors
///
/// [`ErrorInfo`] if `offset` is beyond the text.
pub fn piece(text: &str, offset: usize, max_bytes: usize) -> Result<String, ErrorInfo> {
    let all = text.len();
    if offset > all {
        return Err(ErrorInfo::new(format!("`offset` is {offset}, but the page has {all} bytes")));
    }
    let start = text.ceil_char_boundary(offset);
    let shown = kitbag_workspace::cut(&text[start..], max_bytes.max(4));
    let end = start + shown.len();
    match end < all {
        true => Ok(format!("{shown}\n[bytes {start}-{end} of {all}; offset={end} reads on]")),
        false => Ok(shown.to_owned()),
    }
}
