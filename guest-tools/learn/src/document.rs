//! One subject: reading, truncating and formatting it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::catalog::Catalog;
use crate::files::{Fault, Files};
use crate::subject::Subject;

/// Maximum length of a delivered subject in bytes.
pub(crate) const SUBJECT_BYTES: usize = 1 << 20;

/// The part of a file in which a NUL marks it as binary: its first 8,192 bytes, as in git.
const BINARY_BYTES: usize = 8192;

/// Maximum number of digits of a tag's number that are examined. Content would need a million
/// different numbers to exhaust them.
const TAG_DIGITS: usize = 7;

/// The text of a subject, up to the part that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Complete characters.
    pub(crate) text: String,
    /// True if the file has more text.
    pub(crate) has_more: bool,
}

impl Document {
    /// Reads at most this many bytes of a subject, and at least enough to detect binary files.
    ///
    /// # Errors
    ///
    /// The reason why it is omitted.
    pub(crate) fn read(
        files: &impl Files,
        catalog: &Catalog,
        subject: &Subject,
        limit: usize,
    ) -> Result<Self, String> {
        let limit = limit.max(BINARY_BYTES);
        let mut bytes = match files.read(&subject.path, limit + 1) {
            // Another name of a disabled file, or replaced since the topic was listed.
            Ok((file, _)) if catalog.disables_file(files, &subject.path, file) => {
                return Err("Disabled".into());
            }
            Ok((_, bytes)) => bytes,
            Err(Fault::NOT_PERMITTED) => return Err("Skipped, because it leaves the topic".into()),
            Err(fault) => return Err(format!("Could not be read ({fault})")),
        };
        if bytes[..bytes.len().min(BINARY_BYTES)].contains(&0) {
            return Err("Skipped, because it is binary (it contains a NUL byte)".into());
        }
        let has_more = bytes.len() > limit;
        bytes.truncate(limit);
        let text = String::from_utf8(bytes).or_else(|error| {
            let fault = error.utf8_error();
            // Only the last character may be incomplete because the read stopped.
            if !has_more || fault.error_len().is_some() {
                return Err("Skipped, because it is not UTF-8 text");
            }
            let mut bytes = error.into_bytes();
            bytes.truncate(fault.valid_up_to());
            Ok(String::from_utf8(bytes).unwrap_or_default())
        })?;
        Ok(Self { text, has_more })
    }

    /// Truncates to at most this many bytes, after a complete line if possible.
    pub(crate) fn cut(&mut self, limit: usize) {
        if self.text.len() > limit {
            self.has_more = true;
        }
        if self.has_more {
            self.text.truncate(self.text.floor_char_boundary(limit));
            let end = self.text.rfind('\n').map_or(self.text.len(), |position| position + 1);
            self.text.truncate(end);
        }
    }

    /// Describes the end of the text for people: `after line 12`, or `after 100 bytes` if that is
    /// within the first line.
    pub(crate) fn end(&self) -> String {
        match self.text.bytes().filter(|byte| *byte == b'\n').count() {
            0 => format!("after {} bytes", self.text.len()),
            lines => format!("after line {lines}"),
        }
    }
}

/// Formats text according to its file type: unchanged, or in a fence that the text cannot close.
pub(crate) fn formatted(subject: &Subject, text: &str) -> String {
    let extension = subject.extension();
    let lower = extension.to_ascii_lowercase();
    if matches!(lower.as_str(), "" | "md" | "txt" | "text") {
        return text.to_owned();
    }
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    let language = language(&lower).unwrap_or(extension);
    // A file name may contain any characters, but the text after the fence must not end the line or
    // be parsed as part of the fence.
    let is_name = |character: char| character.is_alphanumeric() || "+-_#".contains(character);
    let language = if language.chars().all(is_name) { language } else { "" };
    format!("{fence}{language}\n{}{fence}", with_line_end(text))
}

/// Formats content between tags that it cannot close.
pub(crate) fn block(slug: &str, content: &str) -> String {
    let tag = tag("subject", &[content]);
    format!("<{tag} name=\"{}\">\n{}</{tag}>", escaped(slug), with_line_end(content))
}

/// Returns a tag with this name that no content can close: if one of them tries, with the first
/// number that no content contains.
pub(crate) fn tag(name: &str, contents: &[&str]) -> String {
    let close = format!("</{name}");
    let closes = |content: &&str| {
        let tags = content.match_indices('<').map(|(position, _)| &content.as_bytes()[position..]);
        tags.map(|tag| &tag[..close.len().min(tag.len())])
            .any(|tag| tag.eq_ignore_ascii_case(close.as_bytes()))
    };
    if !contents.iter().any(closes) {
        return name.to_owned();
    }
    // In one pass: content of one megabyte can contain a hundred thousand of them.
    let prefix = format!("{name}-");
    let mut numbers = Vec::new();
    for content in contents {
        let mut rest = content.as_bytes();
        while let Some(tag) = rest.get(..prefix.len()) {
            if !tag.eq_ignore_ascii_case(prefix.as_bytes()) {
                rest = &rest[1..];
                continue;
            }
            rest = &rest[prefix.len()..];
            let digits = rest.iter().take(TAG_DIGITS).take_while(|byte| byte.is_ascii_digit());
            let mut number = 0;
            for digit in digits {
                number = number * 10 + usize::from(digit - b'0');
                numbers.push(number);
            }
        }
    }
    // One more candidate than there are numbers, so at least one is free.
    let mut is_taken = vec![false; numbers.len() + 2];
    for number in numbers {
        if let Some(is_taken) = is_taken.get_mut(number) {
            *is_taken = true;
        }
    }
    let free = (1..is_taken.len()).find(|number| !is_taken[*number]).unwrap_or_default();
    format!("{prefix}{free}")
}

/// Escapes characters that start a tag or an entity, or end an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn with_line_end(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

/// Returns the usual name of an extension's language; `None` if it is the extension itself or
/// unknown.
fn language(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "js" | "mjs" | "cjs" => "javascript",
        "ts" | "mts" | "cts" => "typescript",
        "rb" => "ruby",
        "kt" | "kts" => "kotlin",
        "cs" => "csharp",
        "fs" => "fsharp",
        "h" => "c",
        "cc" | "cxx" | "hh" | "hpp" | "hxx" => "cpp",
        "m" => "objectivec",
        "hs" => "haskell",
        "ml" | "mli" => "ocaml",
        "ex" | "exs" => "elixir",
        "erl" => "erlang",
        "clj" | "cljs" => "clojure",
        "jl" => "julia",
        "pl" | "pm" => "perl",
        "sh" | "bash" | "zsh" => "bash",
        "ps1" => "powershell",
        "bat" | "cmd" => "batch",
        "yml" => "yaml",
        "htm" => "html",
        "markdown" | "mdx" => "markdown",
        "tex" => "latex",
        "tf" => "hcl",
        "mk" => "makefile",
        "adoc" => "asciidoc",
        _ => return None,
    })
}
