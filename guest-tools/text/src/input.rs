//! The text of a call: an argument, or a file.

use std::fs::File;
use std::io::Read;

use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::{Location, decode, explain, stat};
use serde::Deserialize;

/// Maximum number of bytes of a file that are in memory. A call has 128 MiB in total.
const MOST_BYTES: u64 = 16 << 20;

/// The source of a text.
#[derive(Debug, Deserialize)]
pub(crate) struct Source {
    pub(crate) text: Option<String>,
    pub(crate) path: Option<String>,
}

/// A text, and the encoding of its file if it was not UTF-8.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) encoding: Option<String>,
    /// The size of its file in bytes.
    pub(crate) bytes: u64,
}

/// The selected source, exactly one of both.
pub(crate) enum Chosen {
    Text(String),
    File(Location),
}

impl Source {
    pub(crate) fn new(text: Option<String>, path: Option<String>) -> Self {
        Self { text, path }
    }

    /// Selects the text or the file. `names` are the names of the arguments.
    pub(crate) fn choose(self, call: &Call, names: (&str, &str)) -> Result<Chosen, ErrorInfo> {
        match (self.text, self.path) {
            (Some(text), None) => Ok(Chosen::Text(text)),
            (None, Some(path)) => Ok(Chosen::File(Location::new(call, &path)?)),
            (None, None) => Err(ErrorInfo::new(format!("pass `{}` or `{}`", names.0, names.1))),
            (Some(_), Some(_)) => {
                Err(ErrorInfo::new(format!("pass `{}` or `{}`, not both", names.0, names.1)))
            }
        }
    }

    /// Returns the text.
    pub(crate) fn text(self, call: &Call, names: (&str, &str)) -> Result<Text, ErrorInfo> {
        match self.choose(call, names)? {
            Chosen::Text(text) => Ok(Text { bytes: text.len() as u64, text, encoding: None }),
            Chosen::File(location) => {
                let content = read(&location)?;
                let bytes = content.len() as u64;
                let decoded = decode(content).map_err(|_| {
                    ErrorInfo::new(format!("`{}` is binary, not text", location.given))
                })?;
                let encoding = decoded.encoding.to_string();
                Ok(Text {
                    text: decoded.text,
                    encoding: (encoding != "UTF-8").then_some(encoding),
                    bytes,
                })
            }
        }
    }

    /// Returns the text in UTF-8, or the bytes of the file.
    pub(crate) fn bytes(self, call: &Call) -> Result<Vec<u8>, ErrorInfo> {
        match self.choose(call, ("text", "path"))? {
            Chosen::Text(text) => Ok(text.into_bytes()),
            Chosen::File(location) => read(&location),
        }
    }
}

/// Opens a file for reading.
pub(crate) fn open(location: &Location) -> Result<File, ErrorInfo> {
    let failed = |error: &std::io::Error| explain(location, "read", error);
    let found = stat(&location.path).map_err(|error| failed(&error))?;
    match found.kind {
        kitbag_workspace::Kind::Directory => {
            Err(ErrorInfo::new(format!("`{}` is a directory", location.given)))
        }
        // The host refuses secrets, and a FIFO would never end.
        kitbag_workspace::Kind::File | kitbag_workspace::Kind::Secret => {
            File::open(&location.path).map_err(|error| failed(&error))
        }
        _ => Err(ErrorInfo::new(format!("`{}` is not a regular file", location.given))),
    }
}

/// Reads a file up to the size limit.
pub(crate) fn read(location: &Location) -> Result<Vec<u8>, ErrorInfo> {
    let mut content = Vec::new();
    let file = open(location)?;
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| explain(location, "read", &error))?;
    if content.len() as u64 > MOST_BYTES {
        return Err(ErrorInfo::new(format!(
            "`{}` has more than {} MiB, the limit; split it",
            location.given,
            MOST_BYTES >> 20
        )));
    }
    Ok(content)
}
