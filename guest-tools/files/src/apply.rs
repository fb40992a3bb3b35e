//! `apply_patch`.

use kitbag_sdk::{Ask, Call, ErrorInfo, Stop};
use kitbag_workspace::{Encoding, Kind, Location, check_changeable, explain, stat, stat_link};
use serde::Deserialize;

use crate::change::{Change, Target, change};
use crate::diff::diff;
use crate::file::{digest, text};
use crate::numbers::count;
use crate::patch::{Action, FilePatch, Hunk, Line, parse};
use crate::place::{Placed, Replacement};
use crate::text::Text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    patch: String,
    #[serde(default)]
    dry_run: bool,
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let mut patches = parse(&arguments.patch).map_err(ErrorInfo::new)?;
    for patch in &mut patches {
        resolve(call, patch)?;
    }
    refuse_links(call, &patches)?;
    change(arguments.dry_run, || {
        let mut files = Files { call, files: Vec::new() };
        let nothing_changed =
            |error: ErrorInfo| ErrorInfo::new(format!("{}\nNothing was changed.", error.message));
        for patch in &patches {
            files.apply(patch).map_err(nothing_changed)?;
        }
        let changes = files.changes().map_err(nothing_changed)?;
        // Changes that cannot be made need no approval.
        for change in &changes.0 {
            let action = if change.content.is_none() { "removed" } else { "written" };
            check_changeable(&change.target.location, action).map_err(nothing_changed)?;
        }
        if !arguments.dry_run {
            ask_to_remove(call, &patches)?;
        }
        Ok(changes)
    })
}

/// Renders the diff in the arguments.
pub(crate) fn rendered(call: &Call) -> Option<String> {
    let arguments: Arguments = call.arguments().ok()?;
    Some(format!("apply_patch\n{}", arguments.patch))
}

/// Chooses the path of a patch that may refer to two: the existing one. For a new file it is the
/// path without the leading letter, unless a directory with that name exists.
fn resolve(call: &Call, patch: &mut FilePatch) -> Result<(), ErrorInfo> {
    let Some(other) = patch.other_path.take() else { return Ok(()) };
    let kind = |path: &str| {
        Location::new(call, path).ok().and_then(|it| stat(&it.path).ok()).map(|it| it.kind)
    };
    let exists = |path: &str| kind(path).is_some();
    let is_ambiguous = match patch.action {
        Action::Create => other
            .split_once('/')
            .is_some_and(|(directory, _)| kind(directory) == Some(Kind::Directory)),
        _ => exists(&patch.path) && exists(&other),
    };
    if is_ambiguous {
        return Err(ErrorInfo::new(format!(
            "the patch can mean `{other}` or `{}`; write `./` before the path in `---` and `+++`. \
             Nothing was changed.",
            patch.path
        )));
    }
    if patch.action != Action::Create && exists(&other) {
        patch.path = other;
    }
    Ok(())
}

/// Refuses to remove or move a link: a patch describes the target of the link, but the link itself
/// would be removed.
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

/// Asks for consent to remove files whose content is not in the patch.
fn ask_to_remove(call: &Call, patches: &[FilePatch]) -> Result<(), Stop> {
    let is_removed = |patch: &&FilePatch| patch.action == Action::Remove && patch.hunks.is_empty();
    let removed: Vec<_> =
        patches.iter().filter(is_removed).map(|patch| format!("`{}`", patch.path)).collect();
    if removed.is_empty() {
        return Ok(());
    }
    let question = format!("The patch removes {}. Allow this?", removed.join(", "));
    match call.ask(Ask::consent("remove", question))? {
        true => Ok(()),
        false => Err(ErrorInfo::new("the removal was declined; nothing was changed").into()),
    }
}

/// The files of a patch, with the parts applied that were read.
struct Files<'a> {
    call: &'a Call,
    files: Vec<Pending>,
}

/// The old and new state of a file.
struct Pending {
    target: Target,
    /// The previous text; `None` if the file did not exist.
    old: Option<Text>,
    new: Option<Text>,
    /// The file that is moved here, by its index.
    from: Option<usize>,
    /// The file is moved to another path.
    is_moved: bool,
    /// The patch changes lines of the file.
    has_hunks: bool,
    notes: Vec<String>,
}

impl Files<'_> {
    /// Returns the index of the file at a path, and reads it if necessary.
    fn file(&mut self, path: &str) -> Result<usize, ErrorInfo> {
        let location = Location::of_file(self.call, path)?;
        let same = |file: &Pending| file.target.location.path == location.path;
        if let Some(known) = self.files.iter().position(same) {
            return Ok(known);
        }
        let target = Target::read(location.clone())?;
        let old = target.content.clone().map(|content| text(&location, content)).transpose()?;
        let old = old.map(Text::from);
        let (new, notes) = (old.clone(), Vec::new());
        let (from, is_moved, has_hunks) = (None, false, false);
        self.files.push(Pending { target, old, new, from, is_moved, has_hunks, notes });
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
        file.notes.extend(patch.mode.as_ref().map(|mode| {
            format!("the mode {mode} of the patch was not set: tools cannot set modes")
        }));
        if patch.action == Action::Create {
            if file.new.is_some() {
                return Err(ErrorInfo::new(format!(
                    "`{path}` already exists, but the patch creates it; update it instead"
                )));
            }
            let content = content(&patch.hunks).map_err(failed)?;
            file.new = Some(Text::new(&content));
            return Ok(());
        }
        let Some(text) = &mut file.new else { return Err(self.missing(path)) };
        file.has_hunks |= !patch.hunks.is_empty();
        let mut placed = Placed::default();
        let parts = placed.place(text.as_str(), &patch.hunks).map_err(failed)?;
        text.replace(parts.iter().map(Replacement::part));
        file.notes.extend(placed.notes);
        if patch.action == Action::Remove {
            if !patch.hunks.is_empty() && !text.as_str().is_empty() {
                return Err(failed(
                    "the patch removes it, but it has more lines than the patch".into(),
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
                "`{to}` already exists, but the patch moves `{from}` there"
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

    /// Returns the changes and their description.
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
            if from.is_none() && content == file.target.content && file.has_hunks {
                return Err(ErrorInfo::new(format!(
                    "`{path}` already has the changes of the patch"
                )));
            }
            let digest = content.as_deref().map(digest).unwrap_or_default();
            let notes: String = file.notes.iter().map(|note| format!("[{note}]\n")).collect();
            let shown = match (old, &file.new) {
                (_, None) => format!("{path}: removed\n"),
                (None, Some(new)) => {
                    let lines = count(new.as_str().lines().count() as u64, "line", "lines");
                    format!("{path}: new file, {lines}, digest {digest}\n{notes}")
                }
                (Some(old), Some(new)) => {
                    let moved =
                        from.map(|from| format!("moved from {}, ", from.target.location.given));
                    let moved = moved.unwrap_or_default();
                    let encoding = match new.encoding() {
                        Encoding::UTF_8 => String::new(),
                        encoding => format!("{encoding}, "),
                    };
                    let (endings, diff) = (endings(old, new), diff(old.as_str(), new.as_str()));
                    let others = file.target.other_names_note();
                    format!(
                        "{path}: {moved}{encoding}digest {digest}\n{notes}{endings}{diff}{others}"
                    )
                }
            };
            answer.push_str(&shown);
            let from = from.map(|from| from.target.clone());
            changes.push(Change { target: file.target.clone(), content, from });
        }
        Ok((changes, answer))
    }
}

/// Describes changed line endings, which a diff does not show.
fn endings(old: &Text, new: &Text) -> String {
    if !old.as_str().contains('\n') {
        return String::new();
    }
    match (old.endings(), new.endings()) {
        (before, now) if before != now => format!("[line endings: {before} before, {now} now]\n"),
        _ if old != new && old.as_str() == new.as_str() => "[other line endings]\n".into(),
        _ => String::new(),
    }
}

/// Returns the content of a file that a patch creates.
fn content(hunks: &[Hunk]) -> Result<String, String> {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        let Line::New(line) = line else {
            return Err("a new file may have only lines that start with `+`".into());
        };
        content.push_str(line);
        content.push('\n');
    }
    if hunks.iter().any(|hunk| hunk.no_newline[1]) {
        content.pop();
    }
    Ok(content)
}
