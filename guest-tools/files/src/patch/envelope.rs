//! The format that starts with `*** Begin Patch`.

use super::unified_diff::range;
use super::{Action, END, FilePatch, Hunk, Line};

/// Reads the lines between `*** Begin Patch` and `*** End Patch`.
///
/// Models pad the markers with blanks. In a hunk, a padded marker may also be a line of the
/// file: [`Markers`] tells them apart.
pub(super) fn read(lines: &[&str], start: usize) -> Result<Vec<FilePatch>, String> {
    let markers = Markers::new(lines, start);
    let mut files: Vec<FilePatch> = Vec::new();
    // The first line of the last file's section.
    let mut began = start;
    // True if `@@` or the file started a hunk that has no line yet.
    let mut is_new = true;
    for (number, line) in lines.iter().enumerate().take(markers.end).skip(start) {
        let wrong = |why: &str| Err(format!("line {} of the patch: {why}: `{line}`", number + 1));
        let is_in_hunk = files.last().is_some_and(|file| !file.hunks.is_empty());
        let marker = markers.at(number, is_in_hunk);
        if let Some((action, path)) = marker.and_then(section) {
            check_update(files.last(), lines, began)?;
            files.push(FilePatch::new(path.to_owned(), action));
            (is_new, began) = (true, number);
            continue;
        }
        let Some(file) = files.last_mut() else {
            return wrong("expected `*** Add File:`, `*** Update File:` or `*** Delete File:`");
        };
        if let Some(path) = marker.and_then(|marker| marker.strip_prefix("*** Move to:")) {
            let from = std::mem::replace(&mut file.path, path.trim().to_owned());
            file.action = Action::MoveFrom(from);
            continue;
        }
        if marker == Some("*** End of File") {
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
            return wrong("expected a line that starts with ` `, `+` or `-`");
        };
        if file.action == Action::Create && !matches!(parsed, Line::New(_)) {
            return wrong("every line of a new file must start with `+`");
        }
        if file.action == Action::Remove {
            return wrong("a deleted file must not have lines");
        }
        if file.hunks.is_empty() {
            file.hunks.push(Hunk::default());
        }
        if let Some(hunk) = file.hunks.last_mut() {
            hunk.lines.push(parsed);
        }
        is_new = false;
    }
    if markers.end == lines.len() {
        return Err(format!("the patch ends without `{END}`: it may be truncated"));
    }
    check_update(files.last(), lines, began)?;
    Ok(files)
}

/// Refuses to update a file without changes.
fn check_update(file: Option<&FilePatch>, lines: &[&str], began: usize) -> Result<(), String> {
    match file {
        Some(file)
            if file.action == Action::Update
                && file.hunks.iter().all(|hunk| hunk.lines.is_empty()) =>
        {
            Err(format!(
                "line {} of the patch: no changed lines follow; each starts with ` `, `+` or `-`: \
                 `{}`",
                began + 1,
                lines[began]
            ))
        }
        _ => Ok(()),
    }
}

/// The lines of a patch that are markers.
struct Markers<'a> {
    lines: &'a [&'a str],
    /// The number of the line `*** End Patch`, or the number of lines.
    end: usize,
    /// True if a marker that cannot be a line of a file is padded.
    are_padded: bool,
}

impl<'a> Markers<'a> {
    fn new(lines: &'a [&'a str], start: usize) -> Self {
        let bare =
            lines.iter().skip(start).position(|line| line.starts_with('*') && is_frame(line, END));
        // A padded marker may also be a line of the file, unless it is the last line.
        let is_last = |at: &usize| is_frame(lines[*at], END);
        let last = lines.iter().rposition(|line| !matches!(line.trim(), "" | "```"));
        let padded = last.filter(|at| *at >= start).filter(is_last);
        let end = bare.map(|at| at + start).or(padded).unwrap_or(lines.len());
        let first = lines.get(start).is_some_and(|line| line.starts_with([' ', '\t']));
        Self { lines, end, are_padded: first || bare.is_none() && padded.is_some() }
    }

    /// Returns the marker in a line, without its padding.
    fn at(&self, number: usize, is_in_hunk: bool) -> Option<&'a str> {
        let line = self.lines[number];
        let marker = line.trim();
        let is_marker = line.starts_with("***")
            || marker.starts_with("*** ")
                && (!is_in_hunk || self.are_padded || self.goes_on(number));
        is_marker.then_some(marker)
    }

    /// Returns true if the line after a padded marker can follow a marker but not a line of a file.
    fn goes_on(&self, number: usize) -> bool {
        let next = self.lines.get(number + 1).copied().unwrap_or_default();
        match section(self.lines[number].trim()) {
            Some((Action::Create, _)) => next.starts_with('+'),
            Some((Action::Remove, _)) => next.starts_with("***"),
            Some(_) => next.starts_with("@@"),
            None => next.starts_with("@@") || next.starts_with("***"),
        }
    }
}

/// Returns true if a line is the first or last marker of a patch, which models also write as
/// `*** End Patch ***`.
pub(super) fn is_frame(line: &str, marker: &str) -> bool {
    line.trim().trim_end_matches('*').trim_end() == marker
}

/// Returns the first section of a patch that does not start like a unified diff.
pub(super) fn first_section(lines: &[&str]) -> Option<usize> {
    let is_start = |line: &&str| line.starts_with("--- ") || section(line).is_some();
    let at = lines.iter().position(is_start)?;
    section(lines[at]).map(|_| at)
}

/// Parses the first line of a file's section.
fn section(marker: &str) -> Option<(Action, &str)> {
    let sections = [
        ("*** Add File:", Action::Create),
        ("*** Update File:", Action::Update),
        ("*** Delete File:", Action::Remove),
    ];
    let found = |(start, action)| Some((action, marker.strip_prefix(start)?.trim()));
    sections.into_iter().find_map(found)
}
