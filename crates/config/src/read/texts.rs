//! Reading files as text.

use std::fs::File;
use std::path::{Path, PathBuf};

use kitbag_base::ByteSize;
use kitbag_fs_guard::OpenError;

use super::bounds;
use crate::layers::origin::Origin;
use crate::read::file::{self, Layer, SourceFile};
use crate::read::sources::Sources;
use crate::report::{Piece, Problem, Report, Span};
use crate::trust::examiner::{Opened, open_own};

/// Reads files as text, and collects the problems with them.
pub(super) struct Texts {
    pub(super) root: PathBuf,
    /// The canonical path of the root, once the root was opened.
    pub(super) real_root: Option<PathBuf>,
    /// The remaining number of bytes that may be read of files other than the user's.
    left: u64,
    pub(super) is_complete: bool,
    pub(super) report: Report,
}

impl Texts {
    pub(super) fn new(root: &Path) -> Self {
        let root = root.to_owned();
        let (is_complete, report) = (true, Report::default());
        Self { root, real_root: None, left: bounds::BYTES, is_complete, report }
    }

    /// Reads a file of the user that the caller named; it must exist. `piece` is its piece of the
    /// configuration.
    pub(super) fn user_file(
        &mut self,
        path: PathBuf,
        sources: &Sources<'_>,
        piece: Piece,
    ) -> Option<SourceFile> {
        const VARIABLE: &str = "KITBAG_CONFIG";
        match open_own(&path, sources.home.as_deref()) {
            Ok(file) => {
                let opened = Opened { file, path: path.clone() };
                self.read(path, (Layer::User, piece), Ok(opened))
            }
            Err(problem) => {
                let is_named = sources.environment.iter().any(|(name, _)| name == VARIABLE);
                let hint = (is_named && !path.exists()).then(|| {
                    format!(
                        "`{VARIABLE}` names it: correct or unset the variable, or create the file"
                    )
                });
                // A missing file that the caller named is the caller's mistake.
                let piece = if hint.is_some() { Piece::Everything } else { piece };
                self.fail(&path, problem.hint(hint), (Layer::User, piece));
                None
            }
        }
    }

    pub(super) fn named(
        &mut self,
        path: PathBuf,
        layer: Layer,
        opened: Result<File, Problem>,
    ) -> Option<SourceFile> {
        match opened.and_then(file::read) {
            Ok(bytes) => self.text(path, layer, bytes, false),
            Err(problem) => {
                self.fail(&path, problem, (layer, Piece::Everything));
                None
            }
        }
    }

    pub(super) fn read(
        &mut self,
        path: PathBuf,
        (layer, piece): (Layer, Piece),
        opened: Result<Opened, OpenError>,
    ) -> Option<SourceFile> {
        let opened = opened.map_err(|error| file::not_opened(&error));
        let most = if layer == Layer::User { file::MAX_BYTES } else { self.left };
        let beyond = format!(
            "is ignored: the files in `.kitbag` exceed the limit of {} in total",
            ByteSize::bytes(bounds::BYTES)
        );
        let read = opened.and_then(|Opened { file, path }| match most < file::MAX_BYTES {
            true => Ok((file::read_within(file, most, &beyond)?, path)),
            false => Ok((file::read(file)?, path)),
        });
        let (bytes, real) = match read {
            Ok(read) => read,
            Err(problem) => {
                self.fail(&path, problem, (layer, piece));
                return None;
            }
        };
        if layer != Layer::User {
            self.left = self.left.saturating_sub(bytes.len() as u64);
        }
        // The path that was read may be outside: a link of the workspace can lead there.
        let is_inside = self.real_root.as_ref().is_some_and(|root| real.starts_with(root));
        let is_outside = layer != Layer::User && !is_inside;
        let before = self.report.enter(piece);
        let file = self.text(path, layer, bytes, is_outside);
        self.report.enter(before);
        file
    }

    /// Returns the content as text. No message quotes a file outside of the workspace.
    pub(super) fn text(
        &mut self,
        path: PathBuf,
        layer: Layer,
        mut bytes: Vec<u8>,
        is_outside: bool,
    ) -> Option<SourceFile> {
        let has_mark = file::take_mark(&mut bytes);
        let source = |text: String| {
            let file = SourceFile::new(path, &self.root, layer, text);
            let file = if has_mark { file.marked() } else { file };
            if is_outside { file.unquoted() } else { file }
        };
        match String::from_utf8(bytes) {
            Ok(text) => Some(source(text)),
            Err(error) => {
                // Only the part before is text that can be shown and has columns.
                let end = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned();
                let file = source(text);
                let problem = "is not UTF-8 from here on; save the file as UTF-8";
                self.report.span(&file, Span::from(end..end), problem);
                self.is_complete = false;
                None
            }
        }
    }

    pub(super) fn fail(&mut self, path: &Path, problem: impl Into<Problem>, piece: (Layer, Piece)) {
        self.is_complete = false;
        let origin = Origin::Found { path: file::relative(path, &self.root) };
        self.report.piece(origin, problem, piece);
    }
}
