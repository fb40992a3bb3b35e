//! Parses patches: unified diffs, and the format that starts with `*** Begin Patch`.

mod envelope;
mod paths;
mod unified_diff;

use std::borrow::Cow;

/// The change of a patch to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePatch {
    pub(crate) path: String,
    /// An alternative path: `a/x` may be the file `x` before a change, or `x` in the directory `a`.
    pub(crate) other_path: Option<String>,
    pub(crate) action: Action,
    pub(crate) hunks: Vec<Hunk>,
    /// The requested mode of the file in git's notation, if it is not 100644 for a new file.
    pub(crate) mode: Option<String>,
}

/// The action on the file, in addition to its hunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The file is changed in place.
    Update,
    /// The file is created.
    Create,
    /// The file is removed. If the patch has hunks, they contain its content.
    Remove,
    /// The file is moved from another path.
    MoveFrom(String),
}

/// A changed passage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The first line of the hunk in the file, from 1; 0 for an empty file. `None` if the patch
    /// does not specify it.
    pub(crate) line: Option<usize>,
    /// Headings: lines above the hunk, in order.
    pub(crate) headings: Vec<String>,
    pub(crate) lines: Vec<Line>,
    /// The hunk is at the end of the file.
    pub(crate) is_at_end: bool,
    /// The patch declares that the last old line, and the last new line, have no newline.
    pub(crate) no_newline: [bool; 2],
    /// True if the patch determines the line endings of new lines. Otherwise they have no carriage
    /// return, and get the endings of the surrounding lines.
    pub(crate) says_endings: bool,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Before or after the changed lines.
    Same(String),
    Old(String),
    New(String),
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

/// Parses a patch. An error names the line of the patch.
pub(crate) fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    // If every line ends with CRLF, the patch itself was written that way. Otherwise a carriage
    // return is part of a file.
    let patch = match patch.matches('\n').count() == patch.matches("\r\n").count() {
        true => Cow::Owned(patch.replace("\r\n", "\n")),
        false => Cow::Borrowed(patch),
    };
    let lines: Vec<&str> = patch.strip_suffix('\n').unwrap_or(&patch).split('\n').collect();
    let begin = lines.iter().position(|line| envelope::is_frame(line, BEGIN));
    // Models may omit the first marker.
    let begin = begin.map(|at| at + 1).or_else(|| envelope::first_section(&lines));
    let mut files = match begin {
        Some(begin) => envelope::read(&lines, begin)?,
        None => unified_diff::read(&lines)?,
    };
    for file in files.iter_mut().filter(|file| file.action != Action::Create) {
        file.hunks.iter_mut().for_each(Hunk::settle_endings);
    }
    if files.is_empty() {
        return Err("the patch names no file: start with `--- a/PATH` and `+++ b/PATH`, or with \
                    `*** Begin Patch` and `*** Update File: PATH`"
            .into());
    }
    let is_mode_only = |file: &FilePatch| file.action == Action::Update && file.hunks.is_empty();
    if let Some(file) = files.iter().find(|file| files.len() == 1 && is_mode_only(file)) {
        let (path, mode) = (&file.path, file.mode.as_deref().unwrap_or_default());
        return Err(format!(
            "`{path}`: the patch only changes its mode to {mode}, but tools cannot set modes"
        ));
    }
    Ok(files)
}

impl FilePatch {
    fn new(path: String, action: Action) -> Self {
        Self { path, other_path: None, action, hunks: Vec::new(), mode: None }
    }
}

impl Hunk {
    /// Removes the carriage returns at line endings, except in new lines if the patch determines
    /// their endings: some lines of the hunk have one and others do not, or all are new. A hunk
    /// with uniform endings may be from a file that differs only in its line endings.
    fn settle_endings(&mut self) {
        let has_return = |line: &&Line| line.text().ends_with('\r');
        let returns = self.lines.iter().filter(has_return).count();
        let is_new = |line: &Line| matches!(line, Line::New(_));
        self.says_endings =
            returns > 0 && (returns < self.lines.len() || self.lines.iter().all(is_new));
        for line in &mut self.lines {
            if self.says_endings && is_new(line) {
                continue;
            }
            let (Line::Same(text) | Line::Old(text) | Line::New(text)) = line;
            if text.ends_with('\r') {
                text.pop();
            }
        }
    }
}

impl Line {
    /// Parses a line of a hunk. An empty line is an empty context line without its space.
    fn parse(line: &str) -> Option<Self> {
        if matches!(line, "" | "\r") {
            return Some(Self::Same(String::new()));
        }
        let text = || line[1..].to_owned();
        match line.as_bytes()[0] {
            b' ' => Some(Self::Same(text())),
            b'-' => Some(Self::Old(text())),
            b'+' => Some(Self::New(text())),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> &str {
        let (Self::Same(text) | Self::Old(text) | Self::New(text)) = self;
        text
    }
}
