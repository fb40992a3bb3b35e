//! `html_to_markdown`: `parse` makes a bounded tree of the page, `content` finds what the page
//! is about, and the crate `htmd` writes that as Markdown.

mod content;
mod parse;
mod table;

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::options::{BulletListMarker, HrStyle, Options};
use htmd::{Element, HtmlToMarkdown};
use kitbag_sdk::{Call, ErrorInfo};
use serde::Deserialize;
use url::Url;

use crate::input::{Chosen, Source};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    text: Option<String>,
    path: Option<String>,
    base: Option<String>,
    #[serde(default = "yes")]
    main: bool,
    #[serde(default = "max_bytes")]
    max_bytes: usize,
    #[serde(default)]
    offset: usize,
}

fn yes() -> bool {
    true
}

/// How long an answer is where the caller does not say.
pub(crate) fn max_bytes() -> usize {
    40_000
}

/// Writes a page as Markdown.
pub(crate) fn html_to_markdown(call: &Call, arguments: Arguments) -> Result<String, ErrorInfo> {
    let Arguments { text, path, base, main, max_bytes, offset } = arguments;
    let base = base.as_deref().map(absolute).transpose()?;
    let tree = match Source::new(text, path).choose(call, ("text", "path"))? {
        Chosen::Text(text) => parse::text(text)?,
        Chosen::File(location) => parse::file(&location)?,
    };
    let content = content::select(&tree, base.as_ref(), main);
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        hr_style: HrStyle::Dashes,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder()
        .options(options)
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
        markdown.insert_str(0, &format!("# {title}\n\n"));
    }
    page(&markdown, offset, max_bytes)
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

/// The address that links are relative to.
fn absolute(base: &str) -> Result<Url, ErrorInfo> {
    Url::parse(base).map_err(|error| {
        ErrorInfo::new(format!(
            "`base` is no absolute URL such as `https://example.com/docs/`: {error}"
        ))
    })
}

/// Whether it begins with a heading of the first level.
fn has_title(markdown: &str) -> bool {
    markdown.lines().take(40).any(|line| line.starts_with("# "))
}

/// A piece of the answer, and how to read on.
fn page(markdown: &str, offset: usize, max_bytes: usize) -> Result<String, ErrorInfo> {
    let all = markdown.len();
    if offset > all {
        return Err(ErrorInfo::new(format!("`offset` is {offset}, the page has {all} bytes")));
    }
    let start = markdown.ceil_char_boundary(offset);
    let shown = kitbag_workspace::cut(&markdown[start..], max_bytes.max(4));
    let end = start + shown.len();
    match end < all {
        true => Ok(format!("{shown}\n[bytes {start}-{end} of {all}; offset={end} reads on]")),
        false => Ok(shown.to_owned()),
    }
}
