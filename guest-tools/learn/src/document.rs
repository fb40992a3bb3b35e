//! One subject: read, cut and written.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::catalog::Catalog;
use crate::files::{Fault, Files};
use crate::subject::Subject;

/// How much of a subject is delivered.
pub(crate) const SUBJECT_BYTES: usize = 1 << 20;

/// Where a NUL says that a file is no text: in its first 8,192 bytes, as git has
/// it.
const BINARY_BYTES: usize = 8192;

/// How many digits of a tag's number are looked at. A content would have to hold
/// a million different ones for that not to be enough.
const TAG_DIGITS: usize = 7;

/// The text of a subject, as far as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Whole characters.
    pub(crate) text: String,
    /// The file goes on.
    pub(crate) has_more: bool,
}

impl Document {
    /// Reads at most so many bytes of a subject, but never fewer than it takes
    /// to tell whether it is text.
    ///
    /// # Errors
    ///
    /// The reason why it is left out.
    pub(crate) fn read(
        files: &impl Files,
        catalog: &Catalog,
        subject: &Subject,
        limit: usize,
    ) -> Result<Self, String> {
        let limit = limit.max(BINARY_BYTES);
        let mut bytes = match files.read(&subject.path, limit + 1) {
            // A further name of it, or exchanged since the topic was listed.
            Ok((file, _)) if catalog.disables_file(files, &subject.path, file) => {
                return Err("Disabled".into());
            }
            Ok((_, bytes)) => bytes,
            Err(Fault::NOT_PERMITTED) => return Err("Skipped, since it leaves the topic".into()),
            Err(fault) => return Err(format!("Could not be read ({fault})")),
        };
        if bytes[..bytes.len().min(BINARY_BYTES)].contains(&0) {
            return Err("Skipped, since it is binary (it holds a NUL byte)".into());
        }
        let has_more = bytes.len() > limit;
        bytes.truncate(limit);
        let text = String::from_utf8(bytes).or_else(|error| {
            let fault = error.utf8_error();
            // The end may have torn a character apart; anywhere else is none.
            if !has_more || fault.error_len().is_some() {
                return Err("Skipped, since it is no UTF-8 text");
            }
            let mut bytes = error.into_bytes();
            bytes.truncate(fault.valid_up_to());
            Ok(String::from_utf8(bytes).unwrap_or_default())
        })?;
        Ok(Self { text, has_more })
    }

    /// Cuts to at most so many bytes, at the end of a line where there is one.
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

    /// Where it ends, for a person: `after line 12`, or `after 100 bytes` where
    /// that is in the middle of the first line.
    pub(crate) fn end(&self) -> String {
        match self.text.bytes().filter(|byte| *byte == b'\n').count() {
            0 => format!("after {} bytes", self.text.len()),
            lines => format!("after line {lines}"),
        }
    }
}

/// Writes a text as its kind of file asks for: as it is, or in a fence that
/// nothing in it can close.
pub(crate) fn formatted(subject: &Subject, text: &str) -> String {
    let extension = subject.extension();
    let lower = extension.to_ascii_lowercase();
    if matches!(lower.as_str(), "" | "md" | "txt" | "text") {
        return text.to_owned();
    }
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    let language = language(&lower).unwrap_or(extension);
    // A file's name can hold anything, but what follows the fence must not end
    // the line, or be taken for a part of the fence.
    let is_name = |character: char| character.is_alphanumeric() || "+-_#".contains(character);
    let language = if language.chars().all(is_name) { language } else { "" };
    format!("{fence}{language}\n{}{fence}", with_line_end(text))
}

/// Writes a content between tags that nothing in it can close.
pub(crate) fn block(slug: &str, content: &str) -> String {
    let tag = tag("subject", &[content]);
    format!("<{tag} name=\"{}\">\n{}</{tag}>", escaped(slug), with_line_end(content))
}

/// A tag of this name that none of the contents can close: where one of them
/// tries, with the first number behind it that occurs in none.
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
    // In one pass: a content of a megabyte can hold a hundred thousand of them.
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
    // Of so many numbers and one, one is free.
    let mut is_taken = vec![false; numbers.len() + 2];
    for number in numbers {
        if let Some(is_taken) = is_taken.get_mut(number) {
            *is_taken = true;
        }
    }
    let free = (1..is_taken.len()).find(|number| !is_taken[*number]).unwrap_or_default();
    format!("{prefix}{free}")
}

/// Escapes what begins a tag or an entity, or ends an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn with_line_end(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

/// The usual name of the language that an extension stands for; `None` where it
/// is the extension itself, or not known.
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
