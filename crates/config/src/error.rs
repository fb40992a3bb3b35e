//! What is wrong with a configuration, and where: diagnostics, and the report that
//! collects them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kitbag_policy::DirectoryGrant;

use crate::discover::Bound;
use crate::excerpt::Excerpt;
use crate::file::{Layer, SourceFile};
use crate::origin::Origin;
use crate::piece::{Piece, Scope};
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

/// Collects diagnostics, each with the piece of the configuration that it spoils.
#[derive(Debug, Default)]
pub(crate) struct Report {
    found: Vec<Found>,
    /// The piece that is being read.
    piece: Piece,
    /// Whether a file could not be understood, so that later problems may only follow from that.
    is_incomplete: bool,
    /// Whether there are more problems than are kept.
    is_full: bool,
}

/// The most problems that are kept. What follows is not known then, so that it counts as a file
/// that cannot be read.
const MISTAKES: usize = 20_000;

/// A diagnostic in a report.
#[derive(Debug)]
pub(crate) struct Found {
    rank: Rank,
    pub(crate) diagnostic: Diagnostic,
    pub(crate) scope: Scope,
    /// Whether it may only follow from a file that could not be understood.
    pub(crate) is_consequence: bool,
}

/// Files in the order of their layers and paths, then what has no line.
type Rank = (u8, Arc<Path>, u32);

impl Found {
    /// The file, as it is shown.
    pub(crate) fn path(&self) -> Arc<Path> {
        Arc::clone(&self.rank.1)
    }
}

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
        self.spanned(file, span, problem, hint);
    }

    fn spanned(
        &mut self,
        file: &SourceFile,
        span: Span,
        problem: impl Into<Problem>,
        hint: Option<String>,
    ) -> Option<&mut Found> {
        if self.is_full {
            return None;
        }
        let origin = file.origin(span.start);
        let rank = (file.layer() as u8, file.shown().clone(), span.start);
        let scope =
            Scope { layer: Some(file.layer()), piece: self.piece.clone(), names: Vec::new() };
        let diagnostic = match file.is_quoted() {
            true => {
                let excerpt = Some(Excerpt::new(file.text(), span));
                Diagnostic { origin, problem: problem.into(), excerpt, hint }
            }
            false => Diagnostic { origin, problem: Problem::Outside, excerpt: None, hint: None },
        };
        self.push(rank, diagnostic, scope)
    }

    /// As [`span`](Self::span), for another piece than the one that is being read. `names` are
    /// those of tools and toolsets that the piece may restrict besides.
    pub(crate) fn span_of(
        &mut self,
        file: &SourceFile,
        span: Span,
        problem: impl Into<Problem>,
        hint: Option<String>,
        (piece, names): (Piece, Vec<String>),
    ) {
        if let Some(found) = self.spanned(file, span, problem, hint) {
            (found.scope.piece, found.scope.names) = (piece, names);
        }
    }

    /// As [`at`](Self::at), without the line, in which a password may stand.
    pub(crate) fn at_secret<T: ?Sized>(&mut self, at: At<'_, T>, problem: impl Into<Problem>) {
        if let Some(found) = self.spanned(at.file, at.span, problem, None) {
            found.diagnostic.excerpt = None;
        }
    }

    /// Takes down what is wrong with something that has no lines and that nothing works
    /// without: a flag, a variable, the workspace itself.
    pub(crate) fn origin(
        &mut self,
        origin: Origin,
        problem: impl Into<Problem>,
        hint: Option<String>,
    ) {
        let scope = Scope { layer: None, piece: Piece::Everything, names: Vec::new() };
        self.found_at(origin, problem, hint, scope);
    }

    /// Takes down what is wrong with a file or a piece of one that has no lines.
    pub(crate) fn piece(
        &mut self,
        origin: Origin,
        problem: impl Into<Problem>,
        hint: Option<String>,
        (layer, piece): (Layer, Piece),
    ) {
        let scope = Scope { layer: Some(layer), piece, names: Vec::new() };
        self.found_at(origin, problem, hint, scope);
    }

    /// As [`piece`](Self::piece). `names` are those of tools that may be restricted by what is
    /// left out.
    pub(crate) fn piece_of(
        &mut self,
        origin: Origin,
        problem: Problem,
        (layer, piece): (Layer, Piece),
        names: Vec<String>,
    ) {
        self.found_at(origin, problem, None, Scope { layer: Some(layer), piece, names });
    }

    fn found_at(
        &mut self,
        origin: Origin,
        problem: impl Into<Problem>,
        hint: Option<String>,
        scope: Scope,
    ) {
        let path = match &origin {
            Origin::Found { path } | Origin::File { path, .. } => path.clone(),
            _ => Path::new("").into(),
        };
        let rank = (u8::MAX, path, 0);
        let diagnostic = Diagnostic { origin, problem: problem.into(), excerpt: None, hint };
        self.push(rank, diagnostic, scope);
    }

    /// Keeps a problem. `None`: there are too many, and it is not kept.
    fn push(
        &mut self,
        rank: Rank,
        mut diagnostic: Diagnostic,
        mut scope: Scope,
    ) -> Option<&mut Found> {
        if self.is_full {
            return None;
        }
        self.is_full = self.found.len() == MISTAKES;
        if self.is_full {
            // Any of those that follow could be a restriction.
            scope.piece = Piece::File(None);
            diagnostic.problem = Bound::Mistakes.into();
            (diagnostic.excerpt, diagnostic.hint) = (None, None);
        }
        // The file itself may be as it should be.
        if matches!(diagnostic.problem, Problem::TooManyFiles { .. }) {
            scope.piece = Piece::Everything;
        }
        let is_consequence = self.is_incomplete;
        self.found.push(Found { rank, diagnostic, scope, is_consequence });
        if self.is_full { None } else { self.found.last_mut() }
    }

    /// Reads another piece from now on. Returns the one before, to go back to.
    pub(crate) fn enter(&mut self, piece: Piece) -> Piece {
        std::mem::replace(&mut self.piece, piece)
    }

    /// Says which words are in a file that could be read and not understood.
    pub(crate) fn is_of_text(&mut self, file: &SourceFile) {
        let piece = Piece::of_text(file);
        let own = self.found.iter_mut().filter(|found| {
            found.scope.piece == Piece::File(None) && found.rank.1 == *file.shown()
        });
        own.for_each(|found| found.scope.piece = piece.clone());
    }

    /// The piece that is being read.
    pub(crate) fn at_piece(&self) -> &Piece {
        &self.piece
    }

    /// What was taken down so far, in order.
    pub(crate) fn found(&mut self) -> &[Found] {
        self.found.sort_by(|a, b| a.rank.cmp(&b.rank));
        &self.found
    }

    /// Says that a file could not be understood. What is taken down after this may only follow
    /// from that, and is not reported.
    pub(crate) fn is_incomplete_from_here(&mut self) {
        self.is_incomplete = true;
    }

    /// Takes over what another one has.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.found.append(&mut other.found);
        self.is_full |= other.is_full;
    }

    /// Whether anything is wrong.
    pub(crate) fn has_problem(&self) -> bool {
        !self.found.is_empty()
    }

    /// Whether something in a file is wrong. A granted directory can be missing, and its grant
    /// with it.
    pub(crate) fn has_problem_of_files(&self) -> bool {
        self.found.iter().any(|Found { diagnostic, .. }| {
            let is_of_file =
                matches!(diagnostic.origin, Origin::File { .. } | Origin::Found { .. });
            let is_directory =
                matches!(diagnostic.problem, Problem::Grant { kind: DirectoryGrant::KEY, .. });
            is_of_file && !is_directory
        })
    }

    /// Everything that was taken down, in order; `Ok` where that is nothing.
    pub(crate) fn finish(self) -> Result<(), ConfigErrors> {
        self.finish_with(|found| !found.is_consequence)
    }

    /// What cannot be isolated, in order: what is wrong outside of files, and in the user's own
    /// unless that is to be isolated too (`isolates_own`).
    ///
    /// # Errors
    ///
    /// [`ConfigErrors`] holds all of it.
    pub(crate) fn finish_isolated(self, isolates_own: bool) -> Result<(), ConfigErrors> {
        self.finish_with(|Found { scope, is_consequence, .. }| match scope.layer {
            None => true,
            _ if scope.piece == Piece::Everything => true,
            Some(Layer::User) if isolates_own => false,
            Some(Layer::User) => !is_consequence || matches!(scope.piece, Piece::Key(_)),
            Some(Layer::Manifest | Layer::Workspace) => false,
        })
    }

    fn finish_with(mut self, is_error: impl Fn(&Found) -> bool) -> Result<(), ConfigErrors> {
        self.found.retain(is_error);
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by(|a, b| a.rank.cmp(&b.rank));
        Err(ConfigErrors { diagnostics: self.found.into_iter().map(|it| it.diagnostic).collect() })
    }
}

impl Diagnostic {
    /// The diagnostic in one line: the place, the problem, and what to do about it.
    pub fn line(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{}: {}{hint}", self.origin, self.problem)
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
