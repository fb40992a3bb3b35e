//! The formats of documents.

use std::fmt;

use serde::Deserialize;

/// A format that can be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    Json,
    /// JSON Lines: each line is a document.
    Jsonl,
    Toml,
    Yaml,
    /// With a header: each row is an object.
    Csv,
}

impl Format {
    /// Returns the format of a file extension; JSON by default.
    pub(crate) fn of(path: &str) -> Self {
        let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        match extension.as_deref() {
            Some("jsonl" | "ndjson" | "jsonlines") => Self::Jsonl,
            Some("toml") => Self::Toml,
            Some("yaml" | "yml") => Self::Yaml,
            Some("csv" | "tsv") => Self::Csv,
            _ => Self::Json,
        }
    }

    /// Returns true if a file is read row by row, each as a document.
    pub(crate) fn has_rows(self) -> bool {
        matches!(self, Self::Jsonl | Self::Csv)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Json => "JSON",
            Self::Jsonl => "JSON Lines",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
            Self::Csv => "CSV",
        })
    }
}
