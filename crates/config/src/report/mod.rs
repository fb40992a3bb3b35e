//! Diagnostics, and the report that collects them.

mod diagnostic;
mod excerpt;
mod piece;
pub(crate) mod text;

pub(crate) use diagnostic::Problem;
pub use diagnostic::{ConfigErrors, Diagnostic, DiagnosticKind};
pub use excerpt::Excerpt;
pub(crate) use excerpt::Span;
pub use piece::Broken;
pub(crate) use piece::{Piece, Restricts, Scope, consequence};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_fs_guard::Link;
use kitbag_policy::DirectoryGrant;

use crate::format::span::At;
use crate::layers::origin::Origin;
use crate::layers::path::is_led;
use crate::read::file::{Layer, SourceFile};

/// Collects diagnostics, each with the piece of the configuration that it breaks.
#[derive(Debug, Default)]
pub(crate) struct Report {
    found: Vec<Found>,
    piece: Piece,
    /// `true` if a file could not be understood, so that later problems may only follow from that.
    is_incomplete: bool,
    is_full: bool,
    /// Likely mistakes, which change nothing.
    warnings: Vec<Diagnostic>,
    links: Vec<GrantedLink>,
}

/// A granted directory whose path leads through links. The grant is a mistake if a tool may write
/// the links, which is known once all tools are known.
#[derive(Debug)]
pub(crate) struct GrantedLink {
    pub(crate) file: SourceFile,
    pub(crate) span: Span,
    /// The absolute path.
    pub(crate) host: PathBuf,
    canonical: PathBuf,
    pub(crate) links: Vec<Link>,
    /// The tool that the directory is granted to.
    pub(crate) piece: Piece,
}

impl GrantedLink {
    pub(crate) fn canonical(&self) -> PathBuf {
        self.canonical.clone()
    }

    /// Returns whether a link in a workspace leads to the directory, and a file of the workspace
    /// grants it.
    pub(crate) fn is_led_by_workspace(&self, root: &Path) -> bool {
        self.file.layer() != Layer::User && is_led(&self.links, root)
    }
}

/// The maximum number of problems. Further problems are unknown, so the file is then treated as
/// unreadable.
const MISTAKES: usize = 20_000;

const TOO_MANY_MISTAKES: &str =
    "mistakes after this one are not counted, because there are too many";

/// The message for a file outside of the workspace to which a link of the workspace leads.
const OUTSIDE: &str = "there is a mistake here, but the text of this file is hidden, because a \
                       link in the workspace leads to it; copy the file into the workspace to see \
                       the mistake";

#[derive(Debug)]
pub(crate) struct Found {
    rank: Rank,
    pub(crate) diagnostic: Diagnostic,
    pub(crate) scope: Scope,
    /// `true` if the problem may only follow from a file that could not be understood.
    pub(crate) is_consequence: bool,
}

/// The order of problems: files by layer and path, then problems without a line.
type Rank = (u8, Arc<Path>, u32);

impl Found {
    /// Returns the file, as it is shown.
    pub(crate) fn path(&self) -> Arc<Path> {
        Arc::clone(&self.rank.1)
    }
}

impl Report {
    /// Reports a problem at a place in a file.
    pub(crate) fn at<T: ?Sized>(&mut self, at: At<'_, T>, problem: impl Into<Problem>) {
        self.span(at.file, at.span, problem);
    }

    /// Reports a problem with a range of bytes.
    pub(crate) fn span(&mut self, file: &SourceFile, span: Span, problem: impl Into<Problem>) {
        self.spanned(file, span, problem);
    }

    fn spanned(
        &mut self,
        file: &SourceFile,
        span: Span,
        problem: impl Into<Problem>,
    ) -> Option<&mut Found> {
        if self.is_full {
            return None;
        }
        let place = file.origin(span.start);
        let rank = (file.layer() as u8, file.shown().clone(), span.start);
        let scope =
            Scope { layer: Some(file.layer()), piece: self.piece.clone(), names: Vec::new() };
        let diagnostic = match file.is_quoted() {
            true => problem.into().at(place).quoting(Excerpt::new(file.text(), span)),
            false => Problem::from(OUTSIDE).at(place),
        };
        self.push(rank, diagnostic, scope)
    }

    /// Reports a problem like [`span`](Self::span), for a piece other than the current piece.
    /// `names` are other tools and toolsets that the piece may restrict.
    pub(crate) fn span_of(
        &mut self,
        file: &SourceFile,
        span: Span,
        problem: impl Into<Problem>,
        (piece, names): (Piece, Vec<String>),
    ) {
        if let Some(found) = self.spanned(file, span, problem) {
            (found.scope.piece, found.scope.names) = (piece, names);
        }
    }

    /// Reports a problem like [`at`](Self::at), without the line, which may contain a password.
    pub(crate) fn at_secret<T: ?Sized>(&mut self, at: At<'_, T>, problem: impl Into<Problem>) {
        if let Some(found) = self.spanned(at.file, at.span, problem) {
            found.diagnostic.excerpt = None;
        }
    }

    /// Reports a problem with a flag, a variable or the workspace itself, which have no lines. It
    /// breaks the whole configuration.
    pub(crate) fn origin(&mut self, origin: Origin, problem: impl Into<Problem>) {
        let scope = Scope { layer: None, piece: Piece::Everything, names: Vec::new() };
        self.found_at(origin, problem, scope);
    }

    /// Reports a problem with a file, or a piece of a file, that has no lines.
    pub(crate) fn piece(
        &mut self,
        origin: Origin,
        problem: impl Into<Problem>,
        piece: (Layer, Piece),
    ) {
        self.piece_of(origin, problem, piece, Vec::new());
    }

    /// Reports a problem like [`piece`](Self::piece). `names` are the tools that the omitted part
    /// may restrict.
    pub(crate) fn piece_of(
        &mut self,
        origin: Origin,
        problem: impl Into<Problem>,
        (layer, piece): (Layer, Piece),
        names: Vec<String>,
    ) {
        self.found_at(origin, problem, Scope { layer: Some(layer), piece, names });
    }

    fn found_at(&mut self, origin: Origin, problem: impl Into<Problem>, scope: Scope) {
        let path = match &origin {
            Origin::Found { path } | Origin::File { path, .. } => path.clone(),
            _ => Path::new("").into(),
        };
        self.push((u8::MAX, path, 0), problem.into().at(origin), scope);
    }

    /// Adds a problem. Returns `None` if there are too many problems, and it was not added.
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
            // Any of the following problems could concern a restriction.
            scope.piece = Piece::File(None);
            diagnostic = Problem::from(TOO_MANY_MISTAKES).at(diagnostic.place);
        }
        // The file itself may be valid.
        if diagnostic.kind == DiagnosticKind::TooManyFiles {
            scope.piece = Piece::Everything;
        }
        let is_consequence = self.is_incomplete;
        self.found.push(Found { rank, diagnostic, scope, is_consequence });
        if self.is_full { None } else { self.found.last_mut() }
    }

    /// Sets the current piece. Returns the previous piece, to restore it later.
    pub(crate) fn enter(&mut self, piece: Piece) -> Piece {
        std::mem::replace(&mut self.piece, piece)
    }

    pub(crate) fn of_key<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.enter(Piece::Key(key.to_owned()));
        let value = read(self);
        self.enter(before);
        value
    }

    /// Reports a likely mistake.
    pub(crate) fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.warnings)
    }

    /// Records that a grant of a directory leads through links.
    pub(crate) fn link(
        &mut self,
        at: At<'_, String>,
        host: PathBuf,
        canonical: PathBuf,
        links: Vec<Link>,
    ) {
        let (file, span, piece) = (at.file.clone(), at.span, self.piece.clone());
        self.links.push(GrantedLink { file, span, host, canonical, links, piece });
    }

    pub(crate) fn take_links(&mut self) -> Vec<GrantedLink> {
        std::mem::take(&mut self.links)
    }

    /// Records the words of a file that could be read but not understood.
    pub(crate) fn is_of_text(&mut self, file: &SourceFile) {
        let piece = Piece::of_text(file);
        let own = self.found.iter_mut().filter(|found| {
            found.scope.piece == Piece::File(None) && found.rank.1 == *file.shown()
        });
        own.for_each(|found| found.scope.piece = piece.clone());
    }

    pub(crate) fn at_piece(&self) -> &Piece {
        &self.piece
    }

    pub(crate) fn found(&mut self) -> &[Found] {
        self.found.sort_by(|a, b| a.rank.cmp(&b.rank));
        &self.found
    }

    /// Records that a file could not be understood. Problems after this may only follow from that,
    /// and are not reported.
    pub(crate) fn is_incomplete_from_here(&mut self) {
        self.is_incomplete = true;
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.found.append(&mut other.found);
        self.is_full |= other.is_full;
    }

    pub(crate) fn has_problem(&self) -> bool {
        !self.found.is_empty()
    }

    /// Returns whether a file has a problem. A missing granted directory does not matter: its grant
    /// is missing with it.
    pub(crate) fn has_problem_of_files(&self) -> bool {
        self.found.iter().any(|Found { diagnostic, .. }| {
            let is_of_file = matches!(diagnostic.place, Origin::File { .. } | Origin::Found { .. });
            is_of_file && diagnostic.kind != DiagnosticKind::Grant(DirectoryGrant::KEY)
        })
    }

    /// Returns all problems, in order; `Ok` if there are none.
    pub(crate) fn finish(self) -> Result<(), ConfigErrors> {
        self.finish_with(|found| !found.is_consequence)
    }

    /// Returns the problems that cannot be isolated, in order: those outside of files and, unless
    /// `isolates_own` is set, those in the user config.
    ///
    /// # Errors
    ///
    /// [`ConfigErrors`] holds all of them.
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
