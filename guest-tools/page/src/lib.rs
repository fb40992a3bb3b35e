//! HTML pages as Markdown, for the tools that read them: `parse` makes a bounded tree of
//! the page, `content` finds what the page is about, and the crate `htmd` writes that as
//! Markdown.
//!
//! A page is anything that a server on the web answers. What takes these crates time that grows
//! with the square of it is kept from them.

#![forbid(unsafe_code)]

mod attributes;
mod content;
mod image;
mod parse;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use std::io::{self, Read, Seek};

pub use encoding_rs::Encoding;
use htmd::element_handler::{HandlerResult, Handlers};
use htmd::options::{BulletListMarker, HrStyle, Options};
use htmd::{Element, HtmlToMarkdown};
use kitbag_sdk::ErrorInfo;
use markup5ever_rcdom::RcDom;
use url::Url;

/// How long an answer is where the caller does not say, in bytes.
pub const MAX_BYTES: usize = 40_000;

/// A page, as a tree of its elements. It has at most a million of elements and texts, which
/// lie at most 128 deep.
pub struct Page(RcDom);

impl Page {
    /// Reads a page that is text.
    ///
    /// # Errors
    ///
    /// It has more elements than a page may have.
    pub fn parse(text: String) -> Result<Self, ErrorInfo> {
        parse::text(text).map(Self)
    }

    /// Reads a page twice, first for its encoding: by its byte order mark, else `encoding`,
    /// which is what came with it says, else as browsers find it in the page.
    ///
    /// # Errors
    ///
    /// `failed` explains what reading it ended with. It has more elements than a page may
    /// have.
    pub fn read(
        file: impl Read + Seek,
        encoding: Option<&'static Encoding>,
        failed: impl Fn(io::Error) -> ErrorInfo,
    ) -> Result<Self, ErrorInfo> {
        match parse::read(file, encoding, None, failed)? {
            (tree, true) => Ok(Self(tree)),
            (_, false) => Err(parse::too_many()),
        }
    }

    /// As [`read`](Self::read), of a page that has more than so many elements and texts its
    /// beginning. Tells whether it is all of it.
    ///
    /// # Errors
    ///
    /// `failed` explains what reading it ended with.
    pub fn read_beginning(
        file: impl Read + Seek,
        encoding: Option<&'static Encoding>,
        most_nodes: usize,
        failed: impl Fn(io::Error) -> ErrorInfo,
    ) -> Result<(Self, bool), ErrorInfo> {
        let (tree, is_whole) = parse::read(file, encoding, Some(most_nodes), failed)?;
        Ok((Self(tree), is_whole))
    }

    /// Writes the main content as Markdown, or with `main` false the whole body. Links are
    /// made absolute by `base`, the URL of the page.
    pub fn markdown(self, base: Option<&Url>, main: bool) -> String {
        let Self(tree) = self;
        let content = content::select(&tree, base, main);
        let options = Options {
            bullet_list_marker: BulletListMarker::Dash,
            hr_style: HrStyle::Dashes,
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Options::default()
        };
        let converter = HtmlToMarkdown::builder()
            .options(options)
            .add_handler(vec!["img"], image::image)
            .add_handler(vec!["table"], table::table)
            .add_handler(vec!["sup", "sub"], |handlers: &dyn Handlers, element: Element| {
                // Markdown has no other form, and without one 10<sup>6</sup> would be 106.
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
        let mut markdown = converter.tree_to_markdown(&content.node);
        drop(tree);
        if let Some(title) = content.title.filter(|_| !has_title(&markdown)) {
            let title = image::escaped(&title, &image::SPECIAL);
            markdown.insert_str(0, &format!("# {title}\n\n"));
        }
        markdown
    }
}

/// The content of an element between two marks; nothing where it is empty.
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

/// Whether it begins with a heading of the first level.
fn has_title(markdown: &str) -> bool {
    markdown.lines().take(40).any(|line| line.starts_with("# "))
}

/// A piece of a text from `offset` on, of at most `max_bytes`, and after it how to read on.
///
/// # Errors
///
/// `offset` lies behind the text.
pub fn piece(text: &str, offset: usize, max_bytes: usize) -> Result<String, ErrorInfo> {
    let all = text.len();
    if offset > all {
        return Err(ErrorInfo::new(format!("`offset` is {offset}, the page has {all} bytes")));
    }
    let start = text.ceil_char_boundary(offset);
    let shown = kitbag_workspace::cut(&text[start..], max_bytes.max(4));
    let end = start + shown.len();
    match end < all {
        true => Ok(format!("{shown}\n[bytes {start}-{end} of {all}; offset={end} reads on]")),
        false => Ok(shown.to_owned()),
    }
}
