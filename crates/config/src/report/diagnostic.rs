//! One mistake in a configuration: its message, its place and a hint.

use std::fmt;

use super::excerpt::Excerpt;
use crate::layers::origin::Origin;

/// All mistakes in a configuration that were found in one pass: at least one [`Diagnostic`], in the
/// order of files and lines.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.render())]
pub struct ConfigErrors {
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// One mistake, its place, and a hint.
///
/// Reads as
///
/// ```text
/// .kitbag/config.toml:4:1: unknown key `desciption` in `tools.word_count`
///   4 | desciption = "Count words"
///     | ^^^^^^^^^^
///   did you mean `description`?
/// ```
///
/// Text from a file is escaped, so that a diagnostic can be written to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The kind of the mistake.
    pub kind: DiagnosticKind,
    /// The mistake, as a fragment: ``unknown key `speed` in `limits` ``.
    pub message: String,
    /// The fix, as a fragment: ``did you mean `description`?``.
    pub hint: Option<String>,
    /// A line and column of a file, a file, a variable or a flag.
    pub place: Origin,
    /// The line of the file that has the mistake.
    pub excerpt: Option<Excerpt>,
}

/// The kinds of diagnostics that code distinguishes. Most are [`Other`](Self::Other).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// A mistake without a kind of its own.
    #[default]
    Other,
    /// A file cannot be read at the moment, because this process has too many open files.
    TooManyFiles,
    /// A workspace sets a limit above its ceiling. The ceiling applies instead.
    AboveCeiling,
    /// A workspace sets a value that only the user config may set.
    UserOnly,
    /// A topic of an untrusted workspace is omitted.
    UntrustedTopic,
    /// A grant of an untrusted workspace, of the kind with this key, is omitted.
    UntrustedGrant(&'static str),
    /// A grant of the kind with this key is invalid, or gives nothing.
    Grant(&'static str),
    /// A workspace's grant of the kind with this key is not within `[ceiling.grants]`.
    BeyondGrantCeiling(&'static str),
    /// A workspace's grants of the kind with this key replace the user's, and some of them do not
    /// take effect.
    ReplacesOwnGrants(&'static str),
    /// A granted variable looks like a secret. The tool can read it.
    SecretVariable,
    /// A tool is granted the secret of this name, but the user has no such secret.
    NoSecret(String),
    /// The user config has a table for the tool of this name, which does not exist.
    AbsentTool(String),
}

/// A mistake before its place is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) kind: DiagnosticKind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    /// Returns a mistake of a kind that code distinguishes.
    pub(crate) fn new(kind: DiagnosticKind, message: impl fmt::Display) -> Self {
        Self { kind, ..Self::from(message) }
    }

    pub(crate) fn hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// Returns the mistake at a place, without an excerpt.
    pub(crate) fn at(self, place: Origin) -> Diagnostic {
        let Self { kind, message, hint } = self;
        Diagnostic { kind, message, hint, place, excerpt: None }
    }
}

/// Not for [`Problem`] itself, which has no `Display`.
impl<T: fmt::Display> From<T> for Problem {
    fn from(message: T) -> Self {
        Self { kind: DiagnosticKind::Other, message: message.to_string(), hint: None }
    }
}

impl ConfigErrors {
    /// Returns the diagnostics, in the order of files and lines; never empty.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    fn render(&self) -> String {
        // A hostile file of 1 MiB can have mistakes in 100,000 places.
        const MOST: usize = 100;
        let mut lines: Vec<_> =
            self.diagnostics.iter().take(MOST).map(Diagnostic::to_string).collect();
        if let Some(more) = self.diagnostics.len().checked_sub(MOST).filter(|more| *more > 0) {
            lines.push(format!("… and {more} more"));
        }
        lines.join("\n")
    }
}

impl Diagnostic {
    /// Returns the diagnostic with the line of its file.
    pub(crate) fn quoting(self, excerpt: Excerpt) -> Self {
        Self { excerpt: Some(excerpt), ..self }
    }

    /// Returns the diagnostic in one line: the place, the message, and the hint.
    pub fn line(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{}: {}{hint}", self.place, self.message)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        if let (Some(excerpt), Origin::File { line, .. }) = (&self.excerpt, &self.place) {
            let number = line.to_string();
            let (before, marked) = (excerpt.mark.start, excerpt.mark.len());
            write!(f, "\n  {number} | {}\n  {:2$} | ", excerpt.text, "", number.len())?;
            write!(f, "{:before$}{:^<marked$}", "", "")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}
