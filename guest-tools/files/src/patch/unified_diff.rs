//! Unified diffs, in the format of `diff -u` and git.

use super::paths::{path_of_both, path_of_one, split_letter, unquoted_path};
use super::{Action, FilePatch, Hunk, Line};

/// Reads the files of a diff. Skips other lines between them.
pub(super) fn read(lines: &[&str]) -> Result<Vec<FilePatch>, String> {
    let mut files: Vec<FilePatch> = Vec::new();
    let mut git: Option<GitHead> = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let wrong = |why: &str| Err(format!("line {} of the patch: {why}: `{line}`", at + 1));
        if let Some(paths) = line.strip_prefix("diff --git ") {
            files.extend(git.take().and_then(GitHead::without_hunks));
            git = Some(GitHead::new(paths));
        } else if git.is_some() && line.starts_with("copy from ") {
            return wrong("a copy cannot be patched; write the new file with `write_file`");
        } else if git.is_some() && is_mode(line) && line.trim_end().ends_with(" 120000") {
            return wrong("a link cannot be patched");
        } else if git.is_some() && is_mode(line) && line.trim_end().ends_with(" 160000") {
            return wrong("a submodule cannot be patched");
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return wrong("binary content cannot be patched");
        } else if is_head(lines, at) {
            let old = path(&line[4..]);
            let new = path(&lines[at + 1][4..]);
            if old.is_none() && new.is_none() {
                return wrong("both files are `/dev/null`");
            }
            files.push(file(git.take().unwrap_or_default(), old.as_deref(), new.as_deref()));
            at += 1;
        } else if line.starts_with("@@") {
            let Some(file) = files.last_mut().filter(|_| git.is_none()) else {
                return wrong("a hunk before `--- PATH` and `+++ PATH`");
            };
            let (hunk, end) = hunk(lines, at);
            if hunk.lines.is_empty() {
                return wrong("a hunk without lines");
            }
            file.hunks.push(hunk);
            at = end;
            continue;
        } else if let Some(git) = &mut git {
            git.read(line);
        }
        at += 1;
    }
    files.extend(git.and_then(GitHead::without_hunks));
    let is_empty =
        |it: &&FilePatch| it.action == Action::Update && it.hunks.is_empty() && it.mode.is_none();
    if let Some(file) = files.iter().find(is_empty) {
        return Err(format!("`{}` has no hunk; a hunk starts with `@@`", file.path));
    }
    Ok(files)
}

/// Creates a file patch from the two header lines above its hunks and git's extended header.
fn file(git: GitHead, old: Option<&str>, new: Option<&str>) -> FilePatch {
    let (action, (path, other_path)) = match (old, new) {
        (Some(old), Some(new)) => (Action::Update, path_of_both(old, new)),
        (Some(old), None) => (Action::Remove, path_of_one(old)),
        (None, new) => (Action::Create, path_of_one(new.unwrap_or_default())),
    };
    let file = match (git.from, git.to, git.path) {
        (Some(from), Some(to), _) => FilePatch::new(to, Action::MoveFrom(from)),
        (_, _, Some(path)) => FilePatch::new(path, action),
        _ => FilePatch { other_path, ..FilePatch::new(path, action) },
    };
    FilePatch { mode: git.mode, ..file }
}

/// The header of a file in a git diff.
#[derive(Default)]
struct GitHead {
    /// The path, if both paths of the first line are equal, possibly except for their letters.
    path: Option<String>,
    from: Option<String>,
    to: Option<String>,
    mode: Option<String>,
    is_new: bool,
    is_deleted: bool,
}

impl GitHead {
    fn new(paths: &str) -> Self {
        Self { path: same_path(paths), ..Self::default() }
    }

    fn read(&mut self, line: &str) {
        if let Some(from) = line.strip_prefix("rename from ") {
            self.from = Some(unquoted_path(from));
        } else if let Some(to) = line.strip_prefix("rename to ") {
            self.to = Some(unquoted_path(to));
        } else if let Some(mode) = line.strip_prefix("new file mode ") {
            self.is_new = true;
            self.mode = (mode.trim_end() != "100644").then(|| mode.trim_end().to_owned());
        } else if let Some(mode) = line.strip_prefix("new mode ") {
            self.mode = Some(mode.trim_end().to_owned());
        }
        self.is_deleted |= line.starts_with("deleted file mode ");
    }

    /// Returns the patch of a file that is only moved, is empty, or has a new mode.
    fn without_hunks(self) -> Option<FilePatch> {
        let (path, action) = match (self.from, self.to) {
            (Some(from), Some(to)) => (to, Action::MoveFrom(from)),
            _ if self.is_new => (self.path?, Action::Create),
            _ if self.is_deleted => (self.path?, Action::Remove),
            _ if self.mode.is_some() => (self.path?, Action::Update),
            _ => return None,
        };
        Some(FilePatch { mode: self.mode, ..FilePatch::new(path, action) })
    }
}

/// Returns the path that is repeated after `diff --git`: with two letters, or without any
/// (`--no-prefix`).
fn same_path(paths: &str) -> Option<String> {
    let half = paths.len() / 2;
    let (old, new) = (paths.get(..half)?, paths.get(half..)?.strip_prefix(' ')?);
    let (old, new) = (unquoted_path(old), unquoted_path(new));
    if old == new {
        return Some(new);
    }
    let ((_, old), (_, new)) = (split_letter(&old)?, split_letter(&new)?);
    (old == new).then(|| new.to_owned())
}

/// Returns true if the two header lines of a file follow.
fn is_head(lines: &[&str], at: usize) -> bool {
    let starts = |at: usize, start: &str| lines.get(at).is_some_and(|it| it.starts_with(start));
    starts(at, "--- ") && starts(at + 1, "+++ ")
}

/// Parses a path in a header line, without the timestamp after it. `None` for no file.
fn path(text: &str) -> Option<String> {
    // Git puts a tab after a path with spaces.
    let path = text.split_once('\t').map_or(text.trim(), |(path, _)| path);
    let path = unquoted_path(path);
    (path != "/dev/null").then_some(path)
}

/// Returns true if a line of git has the mode of a file.
fn is_mode(line: &str) -> bool {
    let starts = ["old mode ", "new mode ", "new file mode ", "deleted file mode ", "index "];
    starts.iter().any(|start| line.starts_with(start))
}

/// Parses the first old line of a hunk, and its number of old and new lines.
pub(super) fn range(line: &str) -> Option<(usize, [usize; 2])> {
    let inner = line.strip_prefix("@@ -")?;
    let inner = inner.split(" @@").next()?;
    let (old, new) = inner.split_once(" +")?;
    let parse = |range: &str| -> Option<(usize, usize)> {
        match range.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((range.parse().ok()?, 1)),
        }
    };
    let ((start, old), (_, new)) = (parse(old.trim())?, parse(new.trim())?);
    Some((start, [old, new]))
}

/// Parses a hunk and returns its end. The numbers in its header may be wrong.
fn hunk(lines: &[&str], head: usize) -> (Hunk, usize) {
    let range = range(lines[head]);
    let mut hunk = Hunk { line: range.map(|(line, _)| line), ..Hunk::default() };
    let mut left = range.map_or([0, 0], |(_, counts)| counts);
    let mut at = head + 1;
    // The number of trailing empty lines, which may not belong to it.
    let mut empty = 0;
    while let Some(line) = lines.get(at) {
        let is_complete = left == [0, 0];
        let is_next = line.starts_with("@@") || line.starts_with("diff --git ");
        let is_signature = is_complete && line.trim_end() == "--";
        if is_next || is_signature || is_complete && range.is_some() && line.is_empty() {
            break;
        }
        // A removed line that begins with `-- ` looks the same.
        if is_head(lines, at) && !(left[0] > 0 && left[1] > 0) {
            break;
        }
        if line.starts_with('\\') {
            match hunk.lines.last() {
                Some(Line::Old(_)) => hunk.no_newline[0] = true,
                Some(Line::New(_)) => hunk.no_newline[1] = true,
                _ => hunk.no_newline = [true, true],
            }
            at += 1;
            continue;
        }
        let Some(parsed) = Line::parse(line) else { break };
        let [old, new] = match &parsed {
            Line::Same(_) => [1, 1],
            Line::Old(_) => [1, 0],
            Line::New(_) => [0, 1],
        };
        left = [left[0].saturating_sub(old), left[1].saturating_sub(new)];
        empty = if line.is_empty() { empty + 1 } else { 0 };
        hunk.lines.push(parsed);
        at += 1;
    }
    if range.is_none() {
        hunk.lines.truncate(hunk.lines.len() - empty);
    }
    (hunk, at)
}
