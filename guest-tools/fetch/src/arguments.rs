//! The arguments of a call.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) method: Method,
    #[serde(default)]
    pub(crate) format: Format,
    #[serde(default = "max_bytes")]
    pub(crate) max_bytes: usize,
    #[serde(default)]
    pub(crate) offset: usize,
}

/// The methods that only read.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Method {
    #[default]
    Get,
    Head,
}

/// The form of an HTML page in the answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// The main content as Markdown.
    #[default]
    Markdown,
    /// The whole page as Markdown.
    Full,
    /// The unchanged page.
    Raw,
}

pub(crate) fn max_bytes() -> usize {
    kitbag_page::MAX_BYTES
}

impl Method {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
        }
    }
}
