//! `html_to_markdown`.

use kitbag_page::{Page, View};
use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::explain;
use serde::Deserialize;
use url::Url;

use crate::input::{Chosen, Source, open};

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

/// Returns the default length of an answer.
pub(crate) fn max_bytes() -> usize {
    kitbag_page::MAX_BYTES
}

/// Writes a page as Markdown.
pub(crate) fn html_to_markdown(call: &Call, arguments: Arguments) -> Result<String, ErrorInfo> {
    let Arguments { text, path, base, main, max_bytes, offset } = arguments;
    let base = base.as_deref().map(absolute).transpose()?;
    let page = match Source::new(text, path).choose(call, ("text", "path"))? {
        Chosen::Text(text) => Page::parse(text)?,
        Chosen::File(location) => {
            let failed = |error| explain(&location, "read", &error);
            Page::read(open(&location)?, None, base.as_ref(), failed)?
        }
    };
    let view = View { base: base.as_ref(), main, all: "`main=false`" };
    page.markdown(&view).piece(offset, max_bytes)
}

/// Parses the base URL of links.
fn absolute(base: &str) -> Result<Url, ErrorInfo> {
    Url::parse(base).map_err(|error| {
        ErrorInfo::new(format!(
            "`base` is not an absolute URL such as `https://example.com/docs/`: {error}"
        ))
    })
}
