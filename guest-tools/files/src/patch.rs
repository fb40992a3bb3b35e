//! Reading patches: unified diffs, and the form that begins with `*** Begin Patch`.

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePatch {
    pub(crate) path: String,
    pub(crate) action: Action,
    pub(crate) hunks: Vec<Hunk>,
}

/// What becomes of the file besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It is changed where it is.
    Update,
    /// It is made.
    Create,
    /// It is removed. The patch has its content where it has hunks.
    Remove,
    /// It comes from another path.
    MoveFrom(String),
}

/// A passage that is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line of the file where it begins, from 1; 0 for an empty file. `None` where the
    /// patch does not say.
    pub(crate) line: Option<usize>,
    /// Lines that stand above it, in order.
    pub(crate) headings: Vec<String>,
    pub(crate) lines: Vec<Line>,
    /// It is at the end of the file.
    pub(crate) is_at_end: bool,
    /// The last old, and the last new line of the file have no newline, says the patch.
    pub(crate) no_newline: [bool; 2],
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Before or behind what is changed.
    Same(String),
    Old(String),
    New(String),
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

/// Reads a patch. An error names the line of the patch.
pub(crate) fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    let lines: Vec<&str> = patch.strip_suffix('\n').unwrap_or(patch).split('\n').collect();
    // Where all of them end so, the patch was written that way. Else it is what a file holds.
    let is_crlf = lines.iter().all(|line| line.ends_with('\r'));
    let without = |line: &'_ str| line.strip_suffix('\r').unwrap_or(line).len();
    let lines: Vec<&str> =
        lines.into_iter().map(|line| if is_crlf { &line[..without(line)] } else { line }).collect();
    let begin = lines.iter().position(|line| line.trim() == BEGIN);
    let mut files = match begin {
        Some(begin) => envelope(&lines, begin + 1)?,
        None => unified(&lines)?,
    };
    // What is there keeps its line endings.
    for file in files.iter_mut().filter(|file| file.action != Action::Create) {
        file.hunks.iter_mut().for_each(Hunk::drop_carriage_returns);
    }
    if files.is_empty() {
        return Err("the patch names no file: begin with `--- a/PATH` and `+++ b/PATH`, or with \
                    `*** Begin Patch` and `*** Update File: PATH`"
            .into());
    }
    Ok(files)
}

/// The form between `*** Begin Patch` and `*** End Patch`.
fn envelope(lines: &[&str], start: usize) -> Result<Vec<FilePatch>, String> {
    let mut files: Vec<FilePatch> = Vec::new();
    // Whether `@@` or the file began a hunk that has no line yet.
    let mut is_new = true;
    for (number, line) in lines.iter().enumerate().skip(start) {
        let wrong = |why: &str| Err(format!("line {} of the patch: {why}: `{line}`", number + 1));
        if line.trim_end() == END {
            return Ok(files);
        }
        if let Some((action, path)) = section(line) {
            files.push(FilePatch { path: path.to_owned(), action, hunks: Vec::new() });
            is_new = true;
            continue;
        }
        let Some(file) = files.last_mut() else {
            return wrong("expected `*** Add File:`, `*** Update File:` or `*** Delete File:`");
        };
        if let Some(path) = line.strip_prefix("*** Move to: ") {
            let from = std::mem::replace(&mut file.path, path.trim().to_owned());
            file.action = Action::MoveFrom(from);
            continue;
        }
        if line.trim_end() == "*** End of File" {
            if let Some(hunk) = file.hunks.last_mut() {
                hunk.is_at_end = true;
            }
            continue;
        }
        if let Some(heading) = line.strip_prefix("@@") {
            let heading = heading.trim();
            if is_new && let Some(hunk) = file.hunks.last_mut().filter(|it| it.lines.is_empty()) {
                hunk.headings.extend((!heading.is_empty()).then(|| heading.to_owned()));
                continue;
            }
            let mut hunk = Hunk::default();
            match range(line) {
                Some((line, _)) => hunk.line = Some(line),
                None if heading.is_empty() => {}
                None => hunk.headings.push(heading.to_owned()),
            }
            file.hunks.push(hunk);
            is_new = true;
            continue;
        }
        let Some(parsed) = Line::parse(line) else {
            return wrong("expected a line that begins with ` `, `+` or `-`");
        };
        if file.action == Action::Create && !matches!(parsed, Line::New(_)) {
            return wrong("every line of a new file begins with `+`");
        }
        if file.action == Action::Remove {
            return wrong("a file that is deleted has no lines");
        }
        if file.hunks.is_empty() {
            file.hunks.push(Hunk::default());
        }
        if let Some(hunk) = file.hunks.last_mut() {
            hunk.lines.push(parsed);
        }
        is_new = false;
    }
    Err(format!("the patch ends without `{END}`: it may be cut"))
}

/// The beginning of a file in that form.
fn section(line: &str) -> Option<(Action, &str)> {
    let sections = [
        ("*** Add File: ", Action::Create),
        ("*** Update File: ", Action::Update),
        ("*** Delete File: ", Action::Remove),
    ];
    let found = |(start, action)| Some((action, line.strip_prefix(start)?.trim()));
    sections.into_iter().find_map(found)
}

/// Unified diffs, as of `diff -u` and git. What stands between them is passed over.
fn unified(lines: &[&str]) -> Result<Vec<FilePatch>, String> {
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
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return wrong("binary content cannot be patched");
        } else if is_head(lines, at) {
            let old = path(&line[4..]);
            let new = path(&lines[at + 1][4..]);
            let (path, action) = match (old, new) {
                (None, None) => return wrong("both files are `/dev/null`"),
                (None, Some(new)) => (without_side(&new, "ab").to_owned(), Action::Create),
                (Some(old), None) => (without_side(&old, "ab").to_owned(), Action::Remove),
                (Some(old), Some(new)) => {
                    let (old, new) = without_sides(&old, &new);
                    let (old, new) = (old.to_owned(), new.to_owned());
                    match git.as_ref().and_then(|it| it.from.clone()) {
                        Some(from) => (new, Action::MoveFrom(from)),
                        // `diff -u old new` of two files: the first one is there.
                        None if old != new => (old, Action::Update),
                        None => (new, Action::Update),
                    }
                }
            };
            git = None;
            files.push(FilePatch { path, action, hunks: Vec::new() });
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
    if let Some(file) = files.iter().find(|it| it.action == Action::Update && it.hunks.is_empty()) {
        return Err(format!("`{}` has no hunk: one begins with `@@`", file.path));
    }
    Ok(files)
}

/// What stands above the hunks of a file in a diff of git.
struct GitHead {
    path: Option<String>,
    from: Option<String>,
    to: Option<String>,
    is_new: bool,
    is_deleted: bool,
}

impl GitHead {
    fn new(paths: &str) -> Self {
        // Both are the same but for the first letter, unless the file moves.
        let half = paths.len() / 2;
        let second = paths.get(half + 1..).and_then(path);
        Self {
            path: second.map(|path| without_side(&path, SIDES).to_owned()),
            from: None,
            to: None,
            is_new: false,
            is_deleted: false,
        }
    }

    fn read(&mut self, line: &str) {
        if let Some(from) = line.strip_prefix("rename from ") {
            self.from = path(from);
        } else if let Some(to) = line.strip_prefix("rename to ") {
            self.to = path(to);
        }
        self.is_new |= line.starts_with("new file mode");
        self.is_deleted |= line.starts_with("deleted file mode");
    }

    /// A file that only moves, or is empty.
    fn without_hunks(self) -> Option<FilePatch> {
        let (path, action) = match (self.from, self.to) {
            (Some(from), Some(to)) => (to, Action::MoveFrom(from)),
            _ if self.is_new => (self.path?, Action::Create),
            _ if self.is_deleted => (self.path?, Action::Remove),
            _ => return None,
        };
        Some(FilePatch { path, action, hunks: Vec::new() })
    }
}

/// Whether the two lines are there with which a file begins.
fn is_head(lines: &[&str], at: usize) -> bool {
    let starts = |at: usize, start: &str| lines.get(at).is_some_and(|it| it.starts_with(start));
    starts(at, "--- ") && starts(at + 1, "+++ ")
}

/// Whether a line of git tells the mode of a file.
fn is_mode(line: &str) -> bool {
    let starts = ["old mode ", "new mode ", "new file mode ", "deleted file mode ", "index "];
    starts.iter().any(|start| line.starts_with(start))
}

/// A path without the time behind it; `None` for no file.
fn path(text: &str) -> Option<String> {
    let path = text.split('\t').next().unwrap_or_default().trim();
    let inner = path.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let path = inner.and_then(unquoted).unwrap_or_else(|| path.to_owned());
    (path != "/dev/null").then_some(path)
}

/// A name that git quotes, as C does: bytes outside of ASCII are octal.
fn unquoted(text: &str) -> Option<String> {
    let mut name = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            name.push(byte);
            continue;
        }
        name.push(match bytes.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            first @ b'0'..=b'3' => {
                let mut digit =
                    || bytes.next().filter(|it| (b'0'..=b'7').contains(it)).map(|it| it - b'0');
                (first - b'0') * 64 + digit()? * 8 + digit()?
            }
            other => other,
        });
    }
    String::from_utf8(name).ok()
}

/// The letters that git puts before a path: `a` and `b`, the other way round in a reverse
/// diff, or with `diff.mnemonicPrefix` those of the commit, the index, the working tree and
/// an object.
const SIDES: &str = "abciow";

/// A path without one of these letters and the slash after it.
fn without_side<'a>(path: &'a str, letters: &str) -> &'a str {
    match path.split_once('/') {
        Some((side, rest)) if side.len() == 1 && letters.contains(side) => rest,
        _ => path,
    }
}

/// Both paths of a file, without the letters where these are two different ones.
fn without_sides<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let (short_old, short_new) = (without_side(old, SIDES), without_side(new, SIDES));
    let is_pair = short_old != old && short_new != new && old[..1] != new[..1];
    if is_pair { (short_old, short_new) } else { (old, new) }
}

/// The line where a hunk begins in the old file, and how many old and new lines it has.
fn range(line: &str) -> Option<(usize, [usize; 2])> {
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

/// Reads a hunk and where it ends. The numbers in its head may be wrong.
fn hunk(lines: &[&str], head: usize) -> (Hunk, usize) {
    let range = range(lines[head]);
    let mut hunk = Hunk { line: range.map(|(line, _)| line), ..Hunk::default() };
    let mut left = range.map_or([0, 0], |(_, counts)| counts);
    let mut at = head + 1;
    // How many empty lines are at its end, which may stand behind it.
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

impl Hunk {
    /// Leaves out the carriage returns at the ends of its lines.
    fn drop_carriage_returns(&mut self) {
        for line in &mut self.lines {
            let (Line::Same(text) | Line::Old(text) | Line::New(text)) = line;
            if text.ends_with('\r') {
                text.pop();
            }
        }
    }
}

impl Line {
    /// Reads a line of a hunk. An empty one is an empty line of context, whose space was lost.
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
}
