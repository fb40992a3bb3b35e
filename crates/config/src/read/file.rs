//! A file: its text, and the line and column of a place in it.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kitbag_base::ContentDigest;
use kitbag_fs_guard::sys::{has_no_other_end, is_too_many_files};
use kitbag_fs_guard::{FileKind, OpenError, Stat, check_file_system};
use kitbag_state::trust::digest_of;

use crate::layers::origin::Origin;
use crate::read::script::Header;
use crate::report::{DiagnosticKind, Problem};

/// The maximum size of a file, in bytes. A thousand tools take a third.
pub const MAX_BYTES: u64 = 1 << 20;

/// The message for a directory where a file should be.
pub(crate) const DIRECTORY_HERE: &str = "is a directory, but must be a file";

/// The message for a FIFO, a socket or a device where a file should be.
pub(crate) const NOT_A_FILE: &str = "is not a regular file";

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A file that was read.
#[derive(Clone, Debug)]
pub struct SourceFile {
    path: PathBuf,
    shown: Arc<Path>,
    layer: Layer,
    text: Arc<str>,
    /// `true` if the file starts with a byte order mark, which is not part of the text.
    has_mark: bool,
    /// The lines, computed when a place is looked up for the first time.
    lines: OnceLock<Lines>,
    is_quoted: bool,
    /// Lines of the file before the first of `text`, and characters before each of its lines.
    before: (u32, u32),
}

/// The layer of a file, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `NAME.toml` beside `NAME.wasm` in `.kitbag/tools/`, or a script with its header.
    Manifest,
    /// The user config, which applies to all workspaces.
    User,
    /// `.kitbag/config.toml` of the workspace.
    Workspace,
}

/// The starts of the lines, and the number of characters before a place.
#[derive(Clone, Debug)]
struct Lines {
    /// The offset of the first byte of each line.
    starts: Vec<u32>,
    /// The number of characters before each block of [`Lines::BLOCK`] bytes, so that a column costs
    /// the same in a line of 10 bytes and a line of a million bytes.
    chars: Vec<u32>,
}

impl SourceFile {
    /// Returns the path of the file; absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the layer of the file.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Returns the text that was read, without a byte order mark. For the header of a script, this
    /// is the text in its comments.
    ///
    /// Only this text takes effect, even if the file has changed since.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Returns the whole content that was read, with the byte order mark.
    pub fn content(&self) -> Cow<'_, str> {
        match self.has_mark {
            false => Cow::Borrowed(&self.text),
            true => Cow::Owned(format!("{BYTE_ORDER_MARK}{}", self.text)),
        }
    }

    /// Returns the digest of the whole content that was read.
    pub fn digest(&self) -> ContentDigest {
        digest_of(self.content().as_bytes())
    }

    /// Returns a file with this content. `root` is the workspace; the path is displayed relative to
    /// it.
    pub(crate) fn new(path: PathBuf, root: &Path, layer: Layer, text: String) -> Self {
        let (text, lines, before) = (text.into(), OnceLock::new(), (0, 0));
        let shown = relative(&path, root);
        Self { shown, path, layer, text, has_mark: false, lines, is_quoted: true, before }
    }

    /// Returns the header of this script as a file.
    pub(crate) fn header(&self, header: Header) -> Self {
        const MARK: &str = "# ";
        let Header { text, lines_before } = header;
        let (text, lines) = (text.into(), OnceLock::new());
        let before = (lines_before, MARK.len() as u32);
        let (path, shown) = (self.path.clone(), Arc::clone(&self.shown));
        let is_quoted = self.is_quoted;
        Self { path, shown, layer: self.layer, text, has_mark: false, lines, is_quoted, before }
    }

    /// Marks the file as one that starts with a byte order mark.
    pub(crate) fn marked(self) -> Self {
        Self { has_mark: true, ..self }
    }

    /// Marks the file as one that no message quotes: a link of a workspace leads to it, and it may
    /// be a private key.
    pub(crate) fn unquoted(self) -> Self {
        Self { is_quoted: false, ..self }
    }

    pub(crate) fn is_quoted(&self) -> bool {
        self.is_quoted
    }

    pub(crate) fn shown(&self) -> &Arc<Path> {
        &self.shown
    }

    /// Returns the place of a byte.
    pub(crate) fn origin(&self, offset: u32) -> Origin {
        let (line, column) =
            self.lines.get_or_init(|| Lines::new(&self.text)).position(&self.text, offset);
        let (lines, columns) = self.before;
        let (line, column) = (line + lines, column + columns);
        Origin::File { path: Arc::clone(&self.shown), line, column }
    }
}

impl Lines {
    const BLOCK: usize = 256;

    fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let after_newline = |(index, byte): (usize, &u8)| (*byte == b'\n').then_some(index + 1);
        let starts = std::iter::once(0).chain(bytes.iter().enumerate().filter_map(after_newline));
        let mut count = 0;
        let chars = bytes.chunks(Self::BLOCK).map(|block| {
            let before = count;
            count += chars(block);
            before
        });
        Self { chars: chars.collect(), starts: starts.map(|start| start as u32).collect() }
    }

    /// Returns the line and column of a byte, both starting at 1; the column in characters.
    fn position(&self, text: &str, offset: u32) -> (u32, u32) {
        let offset = offset.min(text.len() as u32);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        let before = match text.as_bytes().get(start as usize..offset as usize) {
            Some(short) if short.len() <= Self::BLOCK => chars(short),
            _ => self.chars_before(text, offset) - self.chars_before(text, start),
        };
        (line as u32, before + 1)
    }

    fn chars_before(&self, text: &str, offset: u32) -> u32 {
        let offset = offset as usize;
        let block = offset / Self::BLOCK;
        // A text that ends with a full block has no entry for its end.
        let Some(before) = self.chars.get(block) else {
            let last = self.chars.len().saturating_sub(1);
            let before = self.chars.last().copied().unwrap_or(0);
            return before + chars(&text.as_bytes()[last * Self::BLOCK..offset]);
        };
        before + chars(&text.as_bytes()[block * Self::BLOCK..offset])
    }
}

/// Reads a whole file. It was opened without blocking, so it may be of any kind.
pub(crate) fn read(opened: File) -> Result<Vec<u8>, Problem> {
    read_within(opened, MAX_BYTES, "is larger than the limit of 1 MiB")
}

/// Reads a file like [`read`], with a limit of `most` bytes. `beyond` is the message for a larger
/// file.
pub(crate) fn read_within(opened: File, most: u64, beyond: &str) -> Result<Vec<u8>, Problem> {
    let stat = Stat::of(&opened).map_err(|error| unreadable(&error))?;
    // Messages must not quote the kernel's own files, such as an environment.
    check_file_system(&opened).map_err(cannot_be_read)?;
    match stat.kind() {
        FileKind::File => {}
        FileKind::Directory => return Err(DIRECTORY_HERE.into()),
        _ => return Err(NOT_A_FILE.into()),
    }
    if stat.size() > most {
        return Err(beyond.into());
    }
    let mut bytes = Vec::with_capacity(stat.size() as usize + 1);
    opened
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| cannot_be_read(reason(&error)))?;
    if bytes.len() as u64 > most {
        return Err(beyond.into());
    }
    Ok(bytes)
}

/// Removes a byte order mark. Returns whether there was one.
pub(crate) fn take_mark(bytes: &mut Vec<u8>) -> bool {
    let has_mark = bytes.starts_with(BYTE_ORDER_MARK.as_bytes());
    if has_mark {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    has_mark
}

pub(crate) fn cannot_be_read(reason: impl fmt::Display) -> Problem {
    format!("cannot be read: {reason}").into()
}

pub(crate) fn not_opened(error: &OpenError) -> Problem {
    match error {
        OpenError::Io(error) => unreadable(error),
        error => cannot_be_read(error),
    }
}

pub(crate) fn unreadable(error: &io::Error) -> Problem {
    match error {
        // The file is a socket.
        error if has_no_other_end(error) => NOT_A_FILE.into(),
        error if is_too_many_files(error) => {
            Problem { kind: DiagnosticKind::TooManyFiles, ..cannot_be_read(reason(error)) }
        }
        error => cannot_be_read(reason(error)),
    }
}

/// Returns the operating system's message for a failure, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// Returns the displayed form of a path: relative to the workspace if it is inside.
pub(crate) fn relative(path: &Path, root: &Path) -> Arc<Path> {
    match path.strip_prefix(root) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.into(),
        _ => path.into(),
    }
}

/// Returns the number of characters that start in these bytes of UTF-8.
fn chars(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| (**byte as i8) >= -0x40).count() as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new("/w/a.toml".into(), Path::new("/w"), Layer::Workspace, text.to_owned())
    }

    #[test]
    fn paths_outside_the_workspace_are_shown_absolute() {
        let check = |path: &str, expected: &str| {
            assert_eq!(*relative(Path::new(path), Path::new("/w")), *Path::new(expected));
        };
        check("/w/.kitbag/config.toml", ".kitbag/config.toml");
        check("/wide/config.toml", "/wide/config.toml");
        check("/w", "/w");
    }

    proptest! {
        #[test]
        fn positions_equal_a_naive_count(
            text in "([a-zäß\u{1f9f0}\n]|\r\n){0,700}",
            at in any::<prop::sample::Index>(),
        ) {
            let offset = text.floor_char_boundary(at.index(text.len() + 1));
            let before = &text[..offset];
            let line = before.matches('\n').count() as u32 + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() as u32 + 1;
            let path = Path::new("a.toml").into();
            prop_assert_eq!(file(&text).origin(offset as u32), Origin::File { path, line, column });
        }
    }
}
