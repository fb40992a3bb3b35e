//! What is wrong with a configuration, and where: diagnostics, and the report that
//! collects them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::excerpt::Excerpt;
use crate::file::SourceFile;
use crate::origin::Origin;
use crate::problem::Problem;
use crate::written::{At, Span};

/// Everything that is wrong with a configuration, as far as it could be found
/// in one go: at least one [`Diagnostic`], in the order of files and lines.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.render())]
pub struct ConfigErrors {
    diagnostics: Vec<Diagnostic>,
}

/// One thing that is wrong, where it stands, and what was likely meant.
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
/// Whatever comes from a file is escaped, so that it can be written to a
/// terminal.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// What it is about: a place in a file, a file, a variable or a flag.
    pub origin: Origin,
    /// What is wrong.
    pub problem: Problem,
    /// The line in question, where there is one.
    pub excerpt: Option<Excerpt>,
    /// What to do about it, as a fragment: ``did you mean `description`?``.
    pub hint: Option<String>,
}

/// Collects diagnostics.
#[derive(Debug, Default)]
pub(crate) struct Report {
    diagnostics: Vec<(Rank, Diagnostic)>,
}

/// Files in the order of their layers and paths, then what has no line.
type Rank = (u8, Arc<Path>, u32);

impl ConfigErrors {
    /// The diagnostics, in the order of files and lines; never empty.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    fn render(&self) -> String {
        // A hostile file of 1 MiB can be wrong in 100,000 places.
        const MOST: usize = 100;
        let mut lines: Vec<_> =
            self.diagnostics.iter().take(MOST).map(Diagnostic::to_string).collect();
        if let Some(more) = self.diagnostics.len().checked_sub(MOST).filter(|more| *more > 0) {
            lines.push(format!("… and {more} more"));
        }
        lines.join("\n")
    }
}

impl Report {
    /// Takes down what is wrong at a place in a file.
    pub(crate) fn at<T: ?Sized>(&mut self, at: At<'_, T>, problem: impl Into<Problem>) {
        self.span(at.file, at.span, problem, None);
    }

    /// The same, with a hint.
    pub(crate) fn at_with<T: ?Sized>(
        &mut self,
        at: At<'_, T>,
        problem: impl Into<Problem>,
        hint: Option<String>,
    ) {
        self.span(at.file, at.span, problem, hint);
    }

    /// Takes down what is wrong with a range of bytes.
    pub(crate) fn span(
        &mut self,
        file: &SourceFile,
        span: Span,
        problem: impl Into<Problem>,
        hint: Option<String>,
    ) {
        let origin = file.origin(span.start);
        let rank = (file.layer() as u8, file.shown().clone(), span.start);
        let diagnostic = match file.is_quoted() {
            true => {
                let excerpt = Some(Excerpt::new(file.text(), span));
                Diagnostic { origin, problem: problem.into(), excerpt, hint }
            }
            false => Diagnostic { origin, problem: Problem::Outside, excerpt: None, hint: None },
        };
        self.diagnostics.push((rank, diagnostic));
    }

    /// As [`at`](Self::at), without the line, in which a password may stand.
    pub(crate) fn at_secret<T: ?Sized>(&mut self, at: At<'_, T>, problem: impl Into<Problem>) {
        self.at(at, problem);
        if let Some((_, diagnostic)) = self.diagnostics.last_mut() {
            diagnostic.excerpt = None;
        }
    }

    /// Takes down what is wrong with something that has no lines.
    pub(crate) fn origin(
        &mut self,
        origin: Origin,
        problem: impl Into<Problem>,
        hint: Option<String>,
    ) {
        let path = match &origin {
            Origin::Found { path } | Origin::File { path, .. } => path.clone(),
            _ => Path::new("").into(),
        };
        let rank = (u8::MAX, path, 0);
        let diagnostic = Diagnostic { origin, problem: problem.into(), excerpt: None, hint };
        self.diagnostics.push((rank, diagnostic));
    }

    /// Takes over what another one has.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.diagnostics.append(&mut other.diagnostics);
    }

    /// Everything that was taken down, in order; `Ok` where that is nothing.
    pub(crate) fn finish(self) -> Result<(), ConfigErrors> {
        let mut ranked = self.diagnostics;
        if ranked.is_empty() {
            return Ok(());
        }
        ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
        Err(ConfigErrors {
            diagnostics: ranked.into_iter().map(|(_, diagnostic)| diagnostic).collect(),
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.problem)?;
        if let (Some(excerpt), Origin::File { line, .. }) = (&self.excerpt, &self.origin) {
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
