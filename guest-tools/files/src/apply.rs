//! `apply_patch`.

use std::ops::Range;

use kitbag_sdk::{Ask, Call, Description, ErrorInfo, Stop, json};
use kitbag_workspace::{Kind, Location, explain, stat_link};
use serde::Deserialize;

use crate::change::{Change, Target, change};
use crate::diff::diff;
use crate::file::{digest, text};
use crate::mismatch::mismatch;
use crate::patch::{Action, FilePatch, Hunk, Line, parse};
use crate::shown::count;
use crate::text::Text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    patch: String,
    #[serde(default)]
    dry_run: bool,
}

pub(crate) fn describe(name: &str) -> Description {
    crate::writing(
        name,
        "Apply a patch to several files, all or none: a unified diff (line numbers may be wrong), \
         or `*** Begin Patch`, `*** Update File: a.rs`, lines with ` `, `-` or `+`, `*** End \
         Patch`; also Add File, Delete File and Move to. For one file `edit_file` is surer. \
         Answers a diff.",
        json!({
            "patch": { "type": "string" },
            "dry_run": { "type": "boolean", "default": false },
        }),
        &["patch"],
    )
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let patches = parse(&arguments.patch).map_err(ErrorInfo::new)?;
    refuse_links(call, &patches)?;
    if !arguments.dry_run {
        ask_to_remove(call, &patches)?;
    }
    change(arguments.dry_run, || {
        let mut files = Files { call, files: Vec::new() };
        for patch in &patches {
            files.apply(patch).map_err(|error| {
                ErrorInfo::new(format!("{}\nNothing was changed.", error.message))
            })?;
        }
        Ok(files.changes()?)
    })
}

/// Refuses to remove or move a link: a patch is of what the link leads to, which would be
/// removed instead.
fn refuse_links(call: &Call, patches: &[FilePatch]) -> Result<(), ErrorInfo> {
    let gone = patches.iter().filter_map(|patch| match &patch.action {
        Action::Remove => Some(&patch.path),
        Action::MoveFrom(from) => Some(from),
        Action::Update | Action::Create => None,
    });
    for path in gone {
        let location = Location::new(call, path)?;
        if stat_link(&location.path).is_ok_and(|it| it.kind == Kind::Link) {
            return Err(ErrorInfo::new(format!(
                "`{path}` is a link: `remove_path` removes it, `move_path` moves it. Nothing was \
                 changed."
            )));
        }
    }
    Ok(())
}

/// Asks for consent to remove files whose content the patch does not have.
fn ask_to_remove(call: &Call, patches: &[FilePatch]) -> Result<(), Stop> {
    let is_removed = |patch: &&FilePatch| patch.action == Action::Remove && patch.hunks.is_empty();
    let removed: Vec<_> =
        patches.iter().filter(is_removed).map(|patch| format!("`{}`", patch.path)).collect();
    if removed.is_empty() {
        return Ok(());
    }
    let question = format!("The patch removes {}. Shall it?", removed.join(", "));
    match call.ask(Ask::consent("remove", question))? {
        true => Ok(()),
        false => Err(ErrorInfo::new("removing was refused; nothing was changed").into()),
    }
}

/// The files that a patch names, as they are after the parts of it that were read.
struct Files<'a> {
    call: &'a Call,
    files: Vec<Pending>,
}

/// A file before and after.
struct Pending {
    target: Target,
    /// Its text before; `None` where it did not exist.
    old: Option<Text>,
    new: Option<Text>,
    /// The file that it was until now, by its position.
    from: Option<usize>,
    /// It is another file now.
    is_moved: bool,
    notes: Vec<String>,
}

impl Files<'_> {
    /// The file at a path, read unless it was before.
    fn file(&mut self, path: &str) -> Result<usize, ErrorInfo> {
        let location = Location::new(self.call, path)?;
        let same = |file: &Pending| file.target.location.path == location.path;
        if let Some(known) = self.files.iter().position(same) {
            return Ok(known);
        }
        let target = Target::read(location.clone())?;
        let old = target.content.clone().map(|content| text(&location, content)).transpose()?;
        let old = old.map(Text::from);
        let (new, notes) = (old.clone(), Vec::new());
        self.files.push(Pending { target, old, new, from: None, is_moved: false, notes });
        Ok(self.files.len() - 1)
    }

    fn apply(&mut self, patch: &FilePatch) -> Result<(), ErrorInfo> {
        let path = &patch.path;
        let failed = |why: String| ErrorInfo::new(format!("`{path}`: {why}"));
        let file = match &patch.action {
            Action::MoveFrom(from) => self.move_file(from, path)?,
            _ => self.file(path)?,
        };
        let file = &mut self.files[file];
        if patch.action == Action::Create {
            if file.new.is_some() {
                return Err(ErrorInfo::new(format!(
                    "`{path}` exists already, and the patch makes it; update it instead"
                )));
            }
            let content = content(&patch.hunks).map_err(failed)?;
            file.new = Some(Text::new(&content));
            return Ok(());
        }
        let Some(text) = &mut file.new else { return Err(self.missing(path)) };
        let mut placed = Placed::default();
        let parts = placed.place(text.as_str(), &patch.hunks).map_err(failed)?;
        let parts: Vec<_> =
            parts.iter().map(|(range, new)| (range.clone(), new.as_str())).collect();
        text.replace(&parts);
        file.notes.extend(placed.notes);
        if patch.action == Action::Remove {
            if !patch.hunks.is_empty() && !text.as_str().is_empty() {
                return Err(failed(
                    "it would be removed, and has more lines than the patch".into(),
                ));
            }
            file.new = None;
        }
        Ok(())
    }

    fn move_file(&mut self, from: &str, to: &str) -> Result<usize, ErrorInfo> {
        let from_file = self.file(from)?;
        let to_file = self.file(to)?;
        if from_file == to_file {
            return Ok(to_file);
        }
        if self.files[to_file].new.is_some() {
            return Err(ErrorInfo::new(format!(
                "`{to}` exists already, and the patch moves `{from}` there"
            )));
        }
        if self.files[from_file].old.is_none() || self.files[from_file].from.is_some() {
            return Err(self.missing(from));
        }
        let Some(text) = self.files[from_file].new.take() else { return Err(self.missing(from)) };
        self.files[from_file].is_moved = true;
        let moved = &mut self.files[to_file];
        moved.new = Some(text);
        moved.from = Some(from_file);
        Ok(to_file)
    }

    fn missing(&self, path: &str) -> ErrorInfo {
        let missing = std::io::Error::from_raw_os_error(libc::ENOENT);
        match Location::new(self.call, path) {
            Ok(location) => explain(&location, "patched", &missing),
            Err(error) => error,
        }
    }

    /// What is to be changed, and what is said of it.
    fn changes(self) -> Result<(Vec<Change>, String), ErrorInfo> {
        let mut changes = Vec::new();
        let mut answer = String::new();
        for file in &self.files {
            if file.is_moved {
                continue;
            }
            let location = &file.target.location;
            let from = file.from.map(|from| &self.files[from]);
            let content = file.new.as_ref().map(|new| new.to_bytes(location)).transpose()?;
            let old = from.map_or(&file.old, |from| &from.old);
            if content.is_none() && old.is_none() {
                continue;
            }
            let path = &location.given;
            let digest = content.as_deref().map(digest).unwrap_or_default();
            let shown = match (old, &file.new) {
                (_, None) => format!("{path}: removed\n"),
                (None, Some(new)) => {
                    let lines = count(new.as_str().lines().count() as u64, "line", "lines");
                    format!("{path}: new file, {lines}, digest {digest}\n")
                }
                (Some(old), Some(new)) => {
                    let moved =
                        from.map(|from| format!("moved from {}, ", from.target.location.given));
                    let moved = moved.unwrap_or_default();
                    let notes: String =
                        file.notes.iter().map(|note| format!("[{note}]\n")).collect();
                    let diff = diff(old.as_str(), new.as_str());
                    format!("{path}: {moved}digest {digest}\n{notes}{diff}")
                }
            };
            answer.push_str(&shown);
            let from = from.map(|from| from.target.clone());
            changes.push(Change { target: file.target.clone(), content, from });
        }
        Ok((changes, answer))
    }
}

/// The content of a file that a patch makes.
fn content(hunks: &[Hunk]) -> Result<String, String> {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        let Line::New(line) = line else {
            return Err("a new file has only lines that begin with `+`".into());
        };
        content.push_str(line);
        content.push('\n');
    }
    if hunks.iter().any(|hunk| hunk.no_newline[1]) {
        content.pop();
    }
    Ok(content)
}

/// Where the hunks of a file are.
#[derive(Default)]
struct Placed {
    /// The line behind the last hunk, from 0.
    end: usize,
    /// By how many lines the last hunk was further down than the patch says.
    offset: isize,
    notes: Vec<String>,
}

/// How many lines of context at the beginning and the end of a hunk may be other ones.
const FUZZ: usize = 3;

/// What is compared of the lines of context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Exact,
    /// All but whitespace at the ends of a line.
    Trimmed,
    /// So many lines at the beginning and at the end of the hunk are left out.
    Without(usize),
}

impl Placed {
    /// Finds all hunks, in order, and says which parts of the text become what.
    fn place(&mut self, text: &str, hunks: &[Hunk]) -> Result<Vec<(Range<usize>, String)>, String> {
        let file = FileLines::new(text);
        let mut parts = Vec::new();
        for (number, hunk) in hunks.iter().enumerate() {
            let (line, [first, last]) = self.find(&file, hunk, number + 1)?;
            let mut at = line;
            let lines = &hunk.lines[first..hunk.lines.len() - last];
            let mut run: Option<(usize, String)> = None;
            for line in lines {
                match line {
                    Line::Same(_) => {
                        if let Some((start, new)) = run.take() {
                            parts.push(file.part(start..at, new, hunk, false));
                        }
                        at += 1;
                    }
                    Line::Old(_) => {
                        run.get_or_insert_with(|| (at, String::new()));
                        at += 1;
                    }
                    Line::New(new) => {
                        let (_, text) = run.get_or_insert_with(|| (at, String::new()));
                        text.push_str(new);
                        text.push('\n');
                    }
                }
            }
            if let Some((start, new)) = run {
                parts.push(file.part(start..at, new, hunk, true));
            }
            self.end = at;
        }
        Ok(parts)
    }

    /// The line where a hunk is, and how many of its first and last lines are left out there.
    fn find(
        &mut self,
        file: &FileLines<'_>,
        hunk: &Hunk,
        number: usize,
    ) -> Result<(usize, [usize; 2]), String> {
        let mut start = self.end;
        for heading in &hunk.headings {
            let found =
                (start..file.lines.len()).find(|at| file.lines[*at].trim() == heading.trim());
            let found = found.or_else(|| {
                (start..file.lines.len()).find(|at| file.lines[*at].contains(heading.as_str()))
            });
            match found {
                Some(at) => start = at + 1,
                None => return Err(format!("hunk {number}: no line is `{heading}`")),
            }
        }
        let wanted: Vec<&Line> =
            hunk.lines.iter().filter(|line| !matches!(line, Line::New(_))).collect();
        // Where the patch says it is, from 0.
        let said = hunk.line.map(|line| match wanted.is_empty() {
            // Without old lines, it is behind that line.
            true => line,
            false => line.saturating_sub(1),
        });
        if wanted.is_empty() {
            return match said {
                Some(line) => {
                    let line = line.saturating_add_signed(self.offset);
                    Ok((line.clamp(start.min(file.lines.len()), file.lines.len()), [0, 0]))
                }
                None if hunk.is_at_end || hunk.headings.is_empty() => {
                    Ok((file.lines.len(), [0, 0]))
                }
                None => Ok((start, [0, 0])),
            };
        }
        let same = |line: &&Line| matches!(line, Line::Same(_));
        let leading = hunk.lines.iter().take_while(same).count();
        let trailing = hunk.lines.iter().rev().take_while(same).count();
        let contexts = [Context::Exact, Context::Trimmed].into_iter();
        // Without any of its lines a hunk could be anywhere.
        let has_old = wanted.iter().any(|line| matches!(line, Line::Old(_)));
        let most = if has_old { leading.max(trailing).min(FUZZ) } else { 0 };
        let contexts = contexts.chain((1..=most).map(Context::Without));
        for context in contexts {
            let [first, last] = match context {
                Context::Without(lines) => [lines.min(leading), lines.min(trailing)],
                _ => [0, 0],
            };
            let part = &wanted[first..wanted.len() - last];
            let mut places = file.places(part, start, context);
            if hunk.is_at_end {
                places.retain(|at| at + part.len() + last >= file.lines.len());
            }
            let Some(place) = self.choose(&places, said.map(|said| said + first)) else {
                if places.len() > 1 {
                    let lines: Vec<_> =
                        places.iter().take(5).map(|at| (at + 1).to_string()).collect();
                    return Err(format!(
                        "hunk {number} is there {} times, in lines {}; give more lines of \
                         context, or the line in `@@ -LINE,… @@`",
                        places.len(),
                        lines.join(", ")
                    ));
                }
                continue;
            };
            if context != Context::Exact {
                self.notes.push(format!(
                    "hunk {number} at line {}: its context differs from the file, which was kept",
                    place + 1
                ));
            }
            if let Some(said) = said {
                self.offset = place as isize - (said + first) as isize;
            }
            return Ok((place, [first, last]));
        }
        let lines = |keep: fn(&Line) -> Option<&str>| {
            hunk.lines.iter().filter_map(keep).collect::<Vec<_>>().join("\n")
        };
        let old = lines(|line| match line {
            Line::Same(line) | Line::Old(line) => Some(line),
            Line::New(_) => None,
        });
        let new = lines(|line| match line {
            Line::Same(line) | Line::New(line) => Some(line),
            Line::Old(_) => None,
        });
        Err(mismatch(&format!("hunk {number}"), file.text, &old, &new))
    }

    /// The place that is nearest to where the patch says, or the only one.
    fn choose(&self, places: &[usize], said: Option<usize>) -> Option<usize> {
        let Some(said) = said else {
            return match places {
                [place] => Some(*place),
                _ => None,
            };
        };
        let said = said.saturating_add_signed(self.offset);
        let nearest = places.iter().min_by_key(|place| place.abs_diff(said))?;
        let distance = nearest.abs_diff(said);
        let is_tied = places.iter().filter(|place| place.abs_diff(said) == distance).count() > 1;
        (!is_tied).then_some(*nearest)
    }
}

/// A text and where its lines begin.
struct FileLines<'a> {
    text: &'a str,
    /// Without their ends.
    lines: Vec<&'a str>,
    starts: Vec<usize>,
}

impl<'a> FileLines<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut starts = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            starts.push(at);
            at += line.len();
            lines.push(line.strip_suffix('\n').unwrap_or(line));
        }
        starts.push(at);
        Self { text, lines, starts }
    }

    /// Where lines of a hunk are, from a line on.
    fn places(&self, wanted: &[&Line], from: usize, context: Context) -> Vec<usize> {
        let Some(last) = self.lines.len().checked_sub(wanted.len()) else { return Vec::new() };
        let fits = |at: usize| {
            wanted.iter().zip(&self.lines[at..]).all(|(wanted, found)| match wanted {
                Line::Old(wanted) => wanted == found,
                Line::Same(wanted) if context == Context::Exact => wanted == found,
                Line::Same(wanted) => wanted.trim() == found.trim(),
                Line::New(_) => true,
            })
        };
        (from..=last).filter(|at| fits(*at)).collect()
    }

    /// The part of the text that these lines are, and what it becomes. The end of the file
    /// keeps its newline, or its lack of one, unless the patch says otherwise.
    fn part(
        &self,
        lines: Range<usize>,
        mut new: String,
        hunk: &Hunk,
        is_last: bool,
    ) -> (Range<usize>, String) {
        let range = self.starts[lines.start]..self.starts[lines.end];
        let is_at_end = range.end == self.text.len();
        let lacks_newline = !self.text.is_empty() && !self.text.ends_with('\n');
        let [old_lacks, new_lacks] = hunk.no_newline;
        if is_at_end && is_last && !new.is_empty() {
            if range.start == self.text.len() && lacks_newline {
                new.insert(0, '\n');
            }
            // The patch gives it one where it says that there was none.
            if new_lacks || lacks_newline && !old_lacks {
                new.pop();
            }
        }
        (range, new)
    }
}
